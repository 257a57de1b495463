"""What one check found."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works, but not as it should
    BROKEN = "broken"  # the service, or a part of it, cannot work
    ABSENT = "absent"  # not there, and not needed


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do where that is not well."""

    part: str
    verdict: Verdict
    detail: str
    advice: str = ""


def well(part: str, detail: str) -> Finding:
    return Finding(part, Verdict.OK, detail)


def poor(part: str, detail: str, advice: str) -> Finding:
    return Finding(part, Verdict.WARNING, detail, advice)


def broken(part: str, detail: str, advice: str) -> Finding:
    return Finding(part, Verdict.BROKEN, detail, advice)


def absent(part: str, detail: str, advice: str = "") -> Finding:
    return Finding(part, Verdict.ABSENT, detail, advice)
