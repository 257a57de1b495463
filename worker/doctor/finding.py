"""The finding of a check of the doctor."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The health of a part of the service."""

    OK = "ok"
    WARNING = "warning"  # the part works, but not as it should
    BROKEN = "broken"  # the service, or a part of it, cannot work
    ABSENT = "absent"  # the machine has no such part, and does not need it


@dataclass(frozen=True, slots=True)
class Finding:
    """The part that a check looked at, its health, and a remedy where it is not well."""

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
