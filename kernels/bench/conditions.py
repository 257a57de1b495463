"""The conditions of a device around a measurement. A condition that cannot be read is None."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Conditions:
    """One look at a device.

    Clocks in MHz (of the multiprocessors, or the CPU's cores on average), temperature in °C, power in W. `throttle`
    names the reasons why clocks are held down; `others` counts other processes that use the device: on a GPU those
    the driver lists, on a CPU how many logical cores they kept busy on average.
    """

    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()
    others: float | None = None


class Observer(Protocol):
    """Looks at one device."""

    @property
    def max_clock_mhz(self) -> float | None:
        """The highest clock that the device should run at when busy; None where that is unknown."""
        ...

    def before(self) -> Conditions:
        """The first look at a measurement."""
        ...

    def after(self) -> Conditions:
        """The second look, right after the measurement. Counters count from the first look on."""
        ...
