"""A team for as long as it is needed."""

from collections.abc import Callable
from typing import Self, TypeVar

from kernels.errors import KernelError, OutOfMemory, RankLost
from kernels.outcome import Outcome
from kernels.scaling.axes import Algorithm, Mode
from kernels.scaling.site import Site
from kernels.scaling.team import Team

T = TypeVar("T")


class Shift:
    """A team, made when it is first needed, and made anew after something went wrong in it."""

    def __init__(self, site: Site, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> None:
        self._make: Callable[[], Team] = lambda: Team(
            site.recruits(mode, algorithm, ranks, largest), site.environment(algorithm)
        )
        self._team: Team | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    @property
    def versions(self) -> tuple[tuple[str, str], ...] | None:
        """The team's libraries; None while there is no team."""
        return None if self._team is None else self._team.versions

    def team(self) -> Team:
        if self._team is None:
            self._team = self._make()
        return self._team

    def attempt(self, measure: Callable[[Team], T], without: Callable[[Outcome, str], T]) -> T:
        """What `measure` gives, or a point without figures if the team refuses."""
        try:
            return measure(self.team())
        except RankLost:
            raise
        except KernelError as error:
            self._end()
            return without(Outcome.SKIPPED if isinstance(error, OutOfMemory) else Outcome.FAILED, str(error))

    def _end(self) -> None:
        if self._team is not None:
            self._team.close()
            self._team = None
