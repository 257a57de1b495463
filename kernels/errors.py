"""Errors of a reduction. Each error carries the `reason` that a failed job reports."""

from collections.abc import Iterable
from typing import ClassVar


class KernelError(Exception):
    """A reduction could not be computed."""

    reason: ClassVar[str] = "internal"


class InvalidInput(KernelError, ValueError):
    """The request or its data cannot be reduced as asked; the fault is the caller's.

    `field` names the offending part of a request ("op", "strategy", "source.dtype", …) where one is known.
    """

    reason = "invalid_input"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def unknown(what: str, name: str, known: Iterable[str], field: str | None = None) -> InvalidInput:
    """The error of a name that is none of the `known` ones. It says which are most like it, or else all."""
    from difflib import get_close_matches

    names, shown = [*known], name[:64]
    near = get_close_matches(shown, names, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else f"; known: {', '.join(names)}"
    return InvalidInput(f"unknown {what} {shown!r}{hint}", field)


class NoElements(InvalidInput):
    """An op that has no value for no elements got no elements, or had to leave all of them out."""


class Unavailable(KernelError):
    """The device or package asked for does not exist on this machine (no GPU, an older chip, a missing package)."""

    reason = "unavailable"


class OutOfMemory(KernelError):
    """The data does not fit in the memory of the device."""

    reason = "out_of_memory"


class CudaError(KernelError):
    """The CUDA driver or runtime reported an error; the process that saw it must be replaced."""

    reason = "cuda_error"


class RankLost(KernelError):
    """A process of a group that works together died, and the others were ended."""

    reason = "worker_lost"


_OF_MEMORY = ("cannot allocate memory", "memory allocation failed", "unable to allocate", "can't start new thread")
"""The words of libraries that have no error of their own for a lack of memory. A thread needs memory for its stack."""


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that the process may not take more memory."""
    text = str(error).lower()
    return isinstance(error, MemoryError | OutOfMemory) or any(words in text for words in _OF_MEMORY)
