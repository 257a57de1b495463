"""Whole studies: over real ranks of the CPU, and over actors where something goes wrong."""

from collections.abc import Mapping, Sequence

import psutil
import pytest

from tests.support.kernels.rank_actors import actors
from tests.support.processes import is_spawned
from warpfold.kernels.backend import Device
from warpfold.kernels.bench.data import Data
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import RankLost
from warpfold.kernels.open import open_backend
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode
from warpfold.kernels.scaling.cpu.ranks import CpuPlacement
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.scaling.records import ArrayRecord, Libraries, MessageRecord, Record
from warpfold.kernels.scaling.run import run
from warpfold.kernels.scaling.study import Study
from warpfold.kernels.studies.outcome import Outcome


class Cores(CpuPlacement):
    """As many ranks as a test wants, whatever this machine has."""

    def __init__(self, device: Device, available: int) -> None:
        super().__init__(device)
        self.available = available


class Stage(Cores):
    """A place whose groups of several do as `act` says."""

    def __init__(self, device: Device, act: str) -> None:
        super().__init__(device, 2)
        self._act = act

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        return actors(ranks, self._act if ranks > 1 else "")

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        return {"NCCL_ALGO": algorithm.value}


@pytest.fixture(scope="module")
def cpu() -> Backend:
    return open_backend("cpu", cpu_cache_bytes=8 << 20)


def arrays(records: Sequence[Record]) -> list[ArrayRecord]:
    return [record for record in records if isinstance(record, ArrayRecord)]


def messages(records: Sequence[Record]) -> list[MessageRecord]:
    return [record for record in records if isinstance(record, MessageRecord)]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("algorithm", [Algorithm.RING, Algorithm.TREE])
def test_three_ranks_give_the_bits_of_the_whole_in_every_dtype(cpu: Backend, mode: Mode, algorithm: Algorithm) -> None:
    dtype = {Algorithm.RING: "float64", Algorithm.TREE: "bfloat16"}[algorithm]
    study = Study(
        sizes=(10_007,),
        sizes_per_rank=(5_000,),
        messages=(8, 800),
        ranks=(3,),
        modes=(mode,),
        algorithms=(algorithm,),
        dtype=dtype,
        data=Data("all_exponents", {}, 7),
        samples=3,
    )
    records = list(run(Cores(cpu.device, 3), study))
    assert [record.outcome for record in arrays(records)] == [Outcome.MEASURED] * 8, [
        record.reason for record in arrays(records)
    ]
    for record in arrays(records):
        if record.method is Method.EXACT:
            whole = cpu.reduce(study.source(record.n), "sum", strategy="exact")
            assert record.same_bits
            assert (record.value, record.hex) == (whole.value, float(whole.value).hex())
        assert len(record.times) == record.ranks
        assert record.samples == 3
        assert record.total_ms is not None
        assert record.total_ms > 0
    assert [(record.outcome, record.correct, record.bytes) for record in messages(records)] == [
        (Outcome.MEASURED, True, 8),
        (Outcome.MEASURED, True, 800),
    ]


def test_more_ranks_than_there_are_and_messages_without_room_are_skipped_and_say_so(cpu: Backend) -> None:
    study = Study(sizes=(1000,), messages=(8, 1 << 34), ranks=(2, 16), modes=(Mode.ONE_PROCESS,), samples=3)
    placement = Cores(cpu.device, 2)
    placement.room = lambda ranks: 1 << 20  # type: ignore[method-assign]
    records = list(run(placement, study))
    reasons = {record.reason for record in arrays(records) + messages(records) if record.outcome is Outcome.SKIPPED}
    assert reasons == {
        "16 ranks were asked for; this machine has room for 2",
        "2 ranks have no room for messages above 1,048,576 bytes",
    }
    assert len(arrays(records)) + len(messages(records)) == len(study)


def test_an_array_that_does_not_fit_is_skipped_while_the_rest_goes_on(
    cpu: Backend,
) -> None:
    too_large = 8 * int(psutil.virtual_memory().total)
    study = Study(sizes=(too_large, 1000), ranks=(1,), methods=(Method.EXACT,), samples=3)
    records = arrays(list(run(Cores(cpu.device, 2), study)))
    assert [record.outcome for record in records] == [Outcome.SKIPPED, Outcome.MEASURED]
    assert "GB of memory" in str(records[0].reason)


@pytest.mark.parametrize("act", ["raise", "bug"])
def test_what_goes_wrong_in_a_rank_fails_its_points_with_the_reason_and_not_the_others(cpu: Backend, act: str) -> None:
    study = Study(sizes=(1000,), messages=(8,), ranks=(2,), modes=(Mode.PROCESS_PER_RANK,), samples=3)
    records = list(run(Stage(cpu.device, act), study))
    several = [record for record in arrays(records) if record.ranks == 2]
    assert {record.outcome for record in several} == {Outcome.FAILED}
    assert {record.reason for record in several} == {
        {"raise": "CUDA_ERROR_ILLEGAL_ADDRESS", "bug": "RuntimeError: a bug"}[act]
    }
    assert {record.outcome for record in arrays(records) if record.ranks == 1} == {Outcome.MEASURED}
    assert {record.outcome for record in messages(records)} == {Outcome.MEASURED}


def test_a_lost_rank_ends_the_study_and_leaves_no_process(cpu: Backend) -> None:
    study = Study(sizes=(1000,), ranks=(2,), samples=3)
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(RankLost, match="signal 9"):
        list(run(Stage(cpu.device, "killed"), study))
    after = [process for process in psutil.Process().children(recursive=True) if process not in before]
    assert not [process for process in after if is_spawned(process)]


def test_the_libraries_are_told_once(cpu: Backend) -> None:
    study = Study(sizes=(1000,), ranks=(1,), samples=3)
    records = list(run(Stage(cpu.device, ""), study))
    assert [record for record in records if isinstance(record, Libraries)] == [Libraries((("actor", "1"),))]


def test_fewer_samples_are_taken_where_they_take_too_long(cpu: Backend) -> None:
    study = Study(sizes=(3_000_000,), ranks=(1,), samples=10_000, time_limit_s=0.05, methods=(Method.EXACT,))
    (record,) = arrays(list(run(Cores(cpu.device, 1), study)))
    assert 3 <= record.samples < 10_000


def test_every_float_dtype_is_summed_as_a_float_too(cpu: Backend) -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        study = Study(sizes=(1001,), ranks=(1,), methods=(Method.FLOAT,), dtype=dtype, data=Data("uniform"), samples=3)
        (record,) = arrays(list(run(Cores(cpu.device, 1), study)))
        exact = cpu.reduce(study.source(1001), "sum", strategy="exact").value
        assert record.value == pytest.approx(float(exact), rel=2.0 ** (3 - DTYPES[dtype].precision))
