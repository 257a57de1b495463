from collections.abc import Mapping, Sequence

import psutil
import pytest

from tests.support.kernels.rank_actors import actors
from warpfold.kernels.backend import Device
from warpfold.kernels.errors import CudaError, OutOfMemory, RankLost
from warpfold.kernels.outcome import Outcome
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.commands import Sample
from warpfold.kernels.scaling.lazy_group import LazyGroup
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.process_group import ProcessGroup


class Stage:
    """A place for two ranks that do as `act` says."""

    devices: tuple[Device, ...] = ()
    available = 2
    note = None

    def __init__(self, act: str = "") -> None:
        self._act = act

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        return actors(ranks, self._act)

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        return {}

    def memory(self, ranks: int) -> int:
        return 1 << 30

    def room(self, ranks: int) -> int:
        return 1 << 20


def lazy(act: str = "") -> LazyGroup:
    return LazyGroup(Stage(act), Mode.PROCESS_PER_RANK, Algorithm.RING, 2, 0)


def without(outcome: Outcome, reason: str) -> str:
    return f"{outcome}: {reason}"


def gone(pids: tuple[int | None, ...]) -> bool:
    return not any(pid is not None and psutil.pid_exists(pid) for pid in pids)


def test_a_group_is_made_when_it_is_needed_kept_and_ended() -> None:
    with lazy() as one:
        assert one.versions is None
        pids = one.attempt(lambda group: group.pids, lambda outcome, reason: ())
        assert one.versions == (("actor", "1"),)
        assert one.group().pids == pids
    assert gone(pids)


def test_what_a_group_refuses_is_a_point_without_figures_and_the_next_has_a_new_group() -> None:
    with lazy("raise") as one:
        pids = one.group().pids
        said = one.attempt(lambda group: str(group.run(Sample(1))), without)
        assert said == "failed: CUDA_ERROR_ILLEGAL_ADDRESS"
        assert gone(pids)
        assert one.group().pids != pids


@pytest.mark.parametrize(("error", "outcome"), [(OutOfMemory("no room"), "skipped"), (CudaError("gone"), "failed")])
def test_a_lack_of_memory_skips_and_anything_else_fails(error: Exception, outcome: str) -> None:
    def refuse(group: ProcessGroup) -> str:
        raise error

    with lazy() as one:
        pids = one.group().pids
        assert one.attempt(refuse, without) == f"{outcome}: {error}"
        assert gone(pids)


def test_a_lost_rank_is_not_for_a_shift_to_mend() -> None:
    with lazy("killed") as one, pytest.raises(RankLost):
        one.attempt(lambda group: str(group.run(Sample(1))), without)
