"""Groups of real processes: what goes wrong in one ends all, and nothing stays behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import psutil
import pytest

from tests.support.kernels.rank_actors import Mirror, actors, fail_to_start, start_and_die
from tests.support.waiting import until
from warpfold.kernels.backend import Device
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import CudaError, KernelError, OutOfMemory, RankLost
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode
from warpfold.kernels.scaling.commands import CheckMessage, Load, PrepareMessage, Sample
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.process_group import LazyGroup, ProcessGroup
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome

SOURCE = GeneratedSource("normal", 1000, 0, DTYPES["float32"], {})


def alive(pids: tuple[int | None, ...]) -> list[int]:
    return [pid for pid in pids if pid is not None and psutil.pid_exists(pid)]


def test_all_join_with_the_tokens_of_all_and_answer_in_the_order_of_ranks() -> None:
    with ProcessGroup(actors(3), {}) as group:
        assert (group.versions, group.carrier) == ((("actor", "1"),), Carrier.SHARED_MEMORY)
        group.run(PrepareMessage(8))
        assert group.run(CheckMessage()) == [True, True, True]
        pids = group.pids
        assert len(set(pids)) == 3
    assert not alive(pids)


def test_the_environment_is_set_in_the_processes_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    with ProcessGroup([partial(Mirror, 0)], {"NCCL_ALGO": None, "NCCL_NVLS_ENABLE": "0"}) as group:
        assert group.versions == (("NCCL_ALGO", "unset"), ("NCCL_NVLS_ENABLE", "0"))
    with ProcessGroup([partial(Mirror, 0)], {"NCCL_ALGO": "Ring"}) as group:
        assert group.versions == (("NCCL_ALGO", "Ring"), ("NCCL_NVLS_ENABLE", "unset"))
    assert os.environ["NCCL_ALGO"] == "Tree"


@pytest.mark.parametrize(("act", "what"), [("killed", r"died \(signal 9\)"), ("stopped", "was stopped")])
def test_a_rank_that_is_killed_or_stopped_ends_those_that_wait_for_it(act: str, what: str) -> None:
    group = ProcessGroup(actors(3, act), {})
    pids = group.pids
    with pytest.raises(RankLost, match=rf"process \d of 3 that ran the ranks {what}"):
        group.run(Sample(1))
    assert not alive(pids)


def test_a_rank_that_was_killed_before_an_order_is_noticed_at_the_order() -> None:
    group = ProcessGroup(actors(2), {})
    pids = group.pids
    assert pids[1] is not None
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(RankLost, match="signal 9"):
        group.run(Sample(1))
    assert not alive(pids)


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [("raise", CudaError, "CUDA_ERROR_ILLEGAL_ADDRESS"), ("bug", KernelError, "RuntimeError: a bug")],
)
def test_what_a_rank_raises_is_raised_and_ends_all(act: str, error: type[KernelError], sentence: str) -> None:
    group = ProcessGroup(actors(2, act), {})
    pids = group.pids
    with pytest.raises(error, match=sentence):
        group.run(Sample(1))
    assert not alive(pids)


def test_a_lack_of_memory_keeps_its_class() -> None:
    group = ProcessGroup(actors(2, "no memory"), {})
    with pytest.raises(OutOfMemory, match="there is no room"):
        group.run(Load(SOURCE, Method.EXACT))


def test_ranks_that_cannot_be_made_say_why() -> None:
    with pytest.raises(CudaError, match="no device"):
        ProcessGroup([*actors(1), fail_to_start], {})


def test_a_process_that_dies_at_its_start_is_reported() -> None:
    with pytest.raises(RankLost, match="exit code 3"):
        ProcessGroup([*actors(1), start_and_die], {})


def test_ranks_die_with_whoever_started_them() -> None:
    script = (
        "import time\n"
        "from warpfold.kernels.scaling.process_group import ProcessGroup\n"
        "from tests.support.kernels.rank_actors import actors\n"
        "if __name__ == '__main__':\n"
        "    group = ProcessGroup(actors(2), {})\n"
        "    print(*group.pids, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = tuple(int(word) for word in parent.stdout.readline().split())
        assert len(alive(pids)) == 2
        parent.kill()
        parent.wait()
        until(lambda: not alive(pids), 30, describe=lambda: "ranks outlived their parent")


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
    with lazy() as group:
        assert group.versions is None
        pids = group.attempt(lambda group: group.pids, lambda outcome, reason: ())
        assert group.versions == (("actor", "1"),)
        assert group.group().pids == pids
    assert gone(pids)


def test_what_a_group_refuses_is_a_point_without_figures_and_the_next_has_a_new_group() -> None:
    with lazy("raise") as group:
        pids = group.group().pids
        reason = group.attempt(lambda group: str(group.run(Sample(1))), without)
        assert reason == "failed: CUDA_ERROR_ILLEGAL_ADDRESS"
        assert gone(pids)
        assert group.group().pids != pids


@pytest.mark.parametrize(("error", "outcome"), [(OutOfMemory("no room"), "skipped"), (CudaError("gone"), "failed")])
def test_a_lack_of_memory_skips_and_anything_else_fails(error: Exception, outcome: str) -> None:
    def refuse(group: ProcessGroup) -> str:
        raise error

    with lazy() as group:
        pids = group.group().pids
        assert group.attempt(refuse, without) == f"{outcome}: {error}"
        assert gone(pids)


def test_a_lost_rank_is_not_for_a_shift_to_mend() -> None:
    with lazy("killed") as group, pytest.raises(RankLost):
        group.attempt(lambda group: str(group.run(Sample(1))), without)
