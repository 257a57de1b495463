"""What a check of the doctor found."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How well a part of the service is."""

    OK = "ok"
    WARNING = "warning"  # the part works, but not as it should
    BROKEN = "broken"  # the service, or a part of it, cannot work
    ABSENT = "absent"  # the part is not there, and not needed


@dataclass(frozen=True, slots=True)
class Finding:
    """The part that a check looked at, how well it is, and what to do where it is not well."""

    part: str
    verdict: Health
    detail: str
    advice: str = ""


def well(part: str, detail: str) -> Finding:
    return Finding(part, Health.OK, detail)


def poor(part: str, detail: str, advice: str) -> Finding:
    return Finding(part, Health.WARNING, detail, advice)


def broken(part: str, detail: str, advice: str) -> Finding:
    return Finding(part, Health.BROKEN, detail, advice)


def absent(part: str, detail: str, advice: str = "") -> Finding:
    return Finding(part, Health.ABSENT, detail, advice)
