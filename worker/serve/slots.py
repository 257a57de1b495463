"""Which slots a machine has."""

import re

from warpfold.contract.needs import GANG
from warpfold.worker.gpu_lock import gpu_count

_SLOT = re.compile(rf"cpu|{GANG}|cuda:\d+")


def default_slots() -> tuple[str, ...]:
    """Every GPU seen, the gang of all of them where there are several, and the CPU."""
    gpus = gpu_count()
    return (*(f"cuda:{index}" for index in range(gpus)), *([GANG] if gpus > 1 else []), "cpu")


def parse_slots(text: str) -> tuple[str, ...]:
    """Slots from "cpu,cuda:0"; ValueError says what is wrong."""
    slots = tuple(part.strip() for part in text.split(",") if part.strip())
    if not slots:
        raise ValueError("name at least one slot, for example cpu or cuda:0,cpu")
    for slot in slots:
        if not _SLOT.fullmatch(slot):
            raise ValueError(f"{slot!r} is not a slot; slots are cpu, cuda:0, cuda:1, …, and gang")
        if slots.count(slot) > 1:
            raise ValueError(f"{slot!r} is named twice")
    return slots
