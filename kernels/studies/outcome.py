"""Outcomes: how a point of a study ended, in all kinds of studies."""

from enum import StrEnum

from warpfold.kernels.errors import InvalidInput, KernelError, OutOfMemory, Unavailable


class Outcome(StrEnum):
    """How a point ended."""

    MEASURED = "measured"
    SKIPPED = "skipped"  # cannot be run here: not claimed, not installed, too large
    FAILED = "failed"  # went wrong: does not compile, crashed, gave a wrong value


def outcome_of(error: Exception) -> tuple[Outcome, str]:
    """How a point ends that raised `error`, and why."""
    sentence = str(error).strip() or type(error).__name__
    match error:
        case InvalidInput() | Unavailable() | OutOfMemory() | MemoryError():
            return Outcome.SKIPPED, sentence
        case KernelError():
            return Outcome.FAILED, sentence
    return Outcome.FAILED, f"{type(error).__name__}: {sentence}"
