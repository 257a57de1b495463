"""A process group for as long as it is needed."""

from collections.abc import Callable
from typing import Self, TypeVar

from warpfold.kernels.errors import KernelError, OutOfMemory, RankLost
from warpfold.kernels.outcome import Outcome
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.placement import Placement
from warpfold.kernels.scaling.process_group import ProcessGroup

T = TypeVar("T")


class LazyGroup:
    """A process group, made when it is first needed, and made anew after something went wrong in it."""

    def __init__(self, placement: Placement, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> None:
        self._make: Callable[[], ProcessGroup] = lambda: ProcessGroup(
            placement.processes(mode, algorithm, ranks, largest), placement.environment(algorithm)
        )
        self._group: ProcessGroup | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    @property
    def versions(self) -> tuple[tuple[str, str], ...] | None:
        """The group's libraries; None while there is no group."""
        return None if self._group is None else self._group.versions

    def group(self) -> ProcessGroup:
        if self._group is None:
            self._group = self._make()
        return self._group

    def attempt(self, measure: Callable[[ProcessGroup], T], without: Callable[[Outcome, str], T]) -> T:
        """What `measure` gives, or a point without figures if the group refuses."""
        try:
            return measure(self.group())
        except RankLost:
            raise
        except KernelError as error:
            self._end()
            return without(Outcome.SKIPPED if isinstance(error, OutOfMemory) else Outcome.FAILED, str(error))

    def _end(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
