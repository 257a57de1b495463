"""Ranks on GPUs, with NCCL between them. What needs two GPUs is skipped with one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.servers import folder
from warpfold.client.api import Client
from warpfold.client.demo.service import running_service
from warpfold.kernels.bench.data import Data
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import RankLost, Unavailable
from warpfold.kernels.exact import ExactState
from warpfold.kernels.open import open_backend
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode
from warpfold.kernels.scaling.commands import Collect, Load, Sample
from warpfold.kernels.scaling.placement import Placement, placement_on
from warpfold.kernels.scaling.process_group import ProcessGroup
from warpfold.kernels.scaling.records import ArrayRecord, MessageRecord
from warpfold.kernels.scaling.run import run
from warpfold.kernels.scaling.study import Study
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome


@pytest.fixture(scope="module")
def gang() -> Backend:
    try:
        return open_backend("gang")
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def placement(gang: Backend) -> Placement:
    return placement_on(gang)


@pytest.fixture
def pair(placement: Placement) -> Placement:
    if placement.available < 2:
        pytest.skip("this machine has one GPU")
    return placement


@pytest.fixture(scope="module")
def cpu() -> Iterator[Backend]:
    opened = open_backend("cpu")
    yield opened
    opened.close()


def state_by_cpu(cpu: Backend, source: GeneratedSource) -> ExactState:
    state = cpu.reduce(source, "sum", strategy="exact").state
    assert state is not None
    return ExactState.from_bytes(state)


def test_one_gpu_is_measured_and_more_than_there_are_is_skipped(placement: Placement) -> None:
    study = Study(sizes=(100_003,), messages=(8,), ranks=(1, 64), samples=10)
    records = list(run(placement, study))
    alone = [record for record in records if isinstance(record, ArrayRecord) and record.ranks == 1]
    assert [(record.outcome, record.speedup, record.communication_ms) for record in alone] == [
        (Outcome.MEASURED, 1.0, 0.0)
    ] * 2
    exact = next(record for record in alone if record.method is Method.EXACT)
    assert exact.same_bits
    others = [record for record in records if isinstance(record, ArrayRecord | MessageRecord) and record.ranks == 64]
    assert {record.outcome for record in others} == {Outcome.SKIPPED}
    assert f"room for {placement.available}" in str(others[0].reason)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("algorithm", [Algorithm.RING, Algorithm.TREE])
def test_all_ranks_hold_the_state_that_the_cpu_computes(
    pair: Placement, cpu: Backend, mode: Mode, algorithm: Algorithm
) -> None:
    with ProcessGroup(pair.processes(mode, algorithm, 2, 0), pair.environment(algorithm)) as group:
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            for distribution in ("normal", "all_exponents", "lognormal"):
                source = Data(distribution, {}, 5).source(dtype, 1_000_003)
                group.run(Load(source, Method.EXACT))
                group.run(Sample(2))
                held = [share for process in group.run(Collect()) for share in process]
                assert held == [state_by_cpu(cpu, source)] * 2


@pytest.mark.parametrize("mode", Mode)
def test_a_study_of_two_gpus_is_exact_and_its_messages_arrive(pair: Placement, mode: Mode) -> None:
    study = Study(
        sizes=(1_000_000,),
        sizes_per_rank=(1 << 20,),
        messages=(8, 1 << 20),
        ranks=(2,),
        modes=(mode,),
        algorithms=(Algorithm.RING,),
        samples=10,
    )
    records = list(run(pair, study))
    arrays = [record for record in records if isinstance(record, ArrayRecord) and record.ranks == 2]
    assert [record.outcome for record in arrays] == [Outcome.MEASURED] * 4, [record.reason for record in arrays]
    for record in arrays:
        assert record.same_bits is not False or record.method is Method.FLOAT
        assert record.communication_ms is not None
        assert record.communication_ms > 0
        assert len(record.times) == 2
    messages = [record for record in records if isinstance(record, MessageRecord)]
    assert [(record.outcome, record.correct) for record in messages] == [(Outcome.MEASURED, True)] * 2


def test_a_killed_rank_ends_its_group_and_leaves_no_process(pair: Placement) -> None:
    source = GeneratedSource("normal", 1_000_000, 0, DTYPES["float32"], {})
    before = set(psutil.Process().children(recursive=True))
    group = ProcessGroup(pair.processes(Mode.PROCESS_PER_RANK, Algorithm.RING, 2, 0), pair.environment(Algorithm.RING))
    group.run(Load(source, Method.EXACT))
    pid = group.pids[1]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RankLost, match="signal 9"):
        group.run(Sample(3))
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [process for process in left if process.pid in group.pids]


def test_a_gang_job_and_jobs_of_single_gpus_all_end(pair: Placement) -> None:
    """The slots of both GPUs, the gang and the CPU at once, with work for all of them."""
    study: dict[str, Any] = {
        **{"kind": "scaling", "sizes": [1_000_000], "ranks": [1, 2], "samples": 3},
        **{"methods": ["exact"], "modes": ["process_per_rank"], "algorithms": ["ring"]},
    }
    array = {"type": "generate", "distribution": "normal", "n": 30_000_000, "seed": 3}
    single = {"kind": "reduce", "backend": "cuda", "strategy": "exact", "source": array}
    with folder() as root:
        (root / "data").mkdir()
        slots = ("--slots", "cuda:0,cuda:1,gang,cpu")
        with running_service(Path(root), *slots) as service, Client(service.url, service.token) as client:
            first = [client.submit(single) for _ in range(5)]
            gangs = [client.submit(study)]
            second = [client.submit(single) for _ in range(5)]
            results = [client.wait(job, timeout_s=240) for job in (*gangs, *first, *second)]
    assert {job.status for job in results} == {"succeeded"}, [job.error for job in results]
    assert (results[0].worker or "").endswith(":gang")
