"""Which slots a machine has."""

import re

_SLOT = re.compile(r"cpu|cuda:\d+")


def gpu_count() -> int:
    """How many GPUs the driver shows; 0 without a driver or its Python binding."""
    try:
        import pynvml
    except ImportError:
        return 0
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()


def default_slots() -> tuple[str, ...]:
    """Every GPU seen, and the CPU."""
    return (*(f"cuda:{index}" for index in range(gpu_count())), "cpu")


def parse_slots(text: str) -> tuple[str, ...]:
    """Slots from "cpu,cuda:0"; ValueError says what is wrong."""
    slots = tuple(part.strip() for part in text.split(",") if part.strip())
    if not slots:
        raise ValueError("name at least one slot, for example cpu or cuda:0,cpu")
    for slot in slots:
        if not _SLOT.fullmatch(slot):
            raise ValueError(f"{slot!r} is not a slot; slots are cpu and cuda:0, cuda:1, …")
        if slots.count(slot) > 1:
            raise ValueError(f"{slot!r} is named twice")
    return slots
