"""Ranks on GPUs, whose sums travel by stores or by NCCL. What needs two GPUs is skipped with one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.servers import folder
from warpfold.client import ReduceArrayResult, ReduceResult
from warpfold.client.api import Client
from warpfold.client.demo.service import running_service
from warpfold.kernels.bench.data import Data
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import RankLost, Unavailable
from warpfold.kernels.exact import ExactState
from warpfold.kernels.open import open_backend
from warpfold.kernels.ops.reference import nearest
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode
from warpfold.kernels.scaling.commands import Collect, Load, Sample
from warpfold.kernels.scaling.placement import Placement, placement_on
from warpfold.kernels.scaling.process import MakeRanks
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


def ranks_of(placement: Placement) -> list[int]:
    """Numbers of ranks, up to one on each GPU."""
    return sorted({2, placement.available})


def processes(mode: Mode, ranks: int, carrier: Carrier) -> list[MakeRanks]:
    """The processes of a group on the first GPUs, whose sums `carrier` is to carry."""
    mailboxes = carrier is Carrier.PEER_ACCESS
    if mode is Mode.ONE_PROCESS:
        return [partial(CudaRanks, range(ranks), 0, ranks, mailboxes=mailboxes)]
    return [partial(CudaRanks, [rank], rank, ranks, mailboxes=mailboxes) for rank in range(ranks)]


def carrier_of(ranks: int) -> Carrier:
    """The carrier of sums that these GPUs should have."""
    from cupy.cuda import runtime

    everyone = all(runtime.deviceCanAccessPeer(*pair) for pair in permutations(range(ranks), 2))
    return Carrier.PEER_ACCESS if everyone else Carrier.NCCL


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
@pytest.mark.parametrize("carrier", [Carrier.PEER_ACCESS, Carrier.NCCL])
def test_all_ranks_hold_the_state_that_the_cpu_computes(
    pair: Placement, cpu: Backend, mode: Mode, carrier: Carrier
) -> None:
    for ranks in ranks_of(pair):
        with ProcessGroup(processes(mode, ranks, carrier), pair.environment(Algorithm.AUTO)) as group:
            assert group.carrier is (carrier_of(ranks) if carrier is Carrier.PEER_ACCESS else carrier)
            for dtype in ("float16", "bfloat16", "float32", "float64"):
                for distribution in ("normal", "all_exponents", "lognormal"):
                    source = Data(distribution, {}, 5).source(dtype, 1_000_003)
                    group.run(Load(source, Method.EXACT))
                    group.run(Sample(2))
                    held = [share for process in group.run(Collect()) for share in process]
                    assert held == [state_by_cpu(cpu, source)] * ranks


@pytest.mark.parametrize("mode", Mode)
def test_the_value_is_the_rounded_sum_of_rationals_run_after_run(pair: Placement, mode: Mode) -> None:
    ranks = pair.available
    with ProcessGroup(processes(mode, ranks, Carrier.PEER_ACCESS), pair.environment(Algorithm.AUTO)) as group:
        for n in (ranks, 1_001, 20_011):
            source = Data("all_exponents", {}, n).source("float64", n)
            exact = nearest(sum(map(Fraction, source.read(0, n).tolist()), Fraction()), source.dtype)
            group.run(Load(source, Method.EXACT))
            for _ in range(40):
                group.run(Sample(8))
                held = [share for process in group.run(Collect()) for share in process]
                assert [state.round_to(source.dtype).hex() for state in held] == [exact.hex()] * ranks


@pytest.mark.parametrize("mode", Mode)
def test_a_study_of_all_gpus_is_exact_and_its_messages_arrive(pair: Placement, mode: Mode) -> None:
    ranks = pair.available
    study = Study(
        sizes=(1_000_000,),
        sizes_per_rank=(1 << 20,),
        messages=(8, 1 << 20),
        ranks=(ranks,),
        modes=(mode,),
        algorithms=(Algorithm.RING,),
        samples=10,
    )
    records = list(run(pair, study))
    arrays = [record for record in records if isinstance(record, ArrayRecord) and record.ranks == ranks]
    assert [record.outcome for record in arrays] == [Outcome.MEASURED] * 4, [record.reason for record in arrays]
    for record in arrays:
        assert record.same_bits is not False or record.method is Method.FLOAT
        assert record.communication_ms is not None
        assert record.communication_ms > 0
        assert len(record.times) == ranks
        assert record.carrier is carrier_of(ranks)
    messages = [record for record in records if isinstance(record, MessageRecord)]
    assert [(record.outcome, record.correct) for record in messages] == [(Outcome.MEASURED, True)] * 2


@pytest.mark.parametrize(("by", "what"), [(signal.SIGKILL, "signal 9"), (signal.SIGSTOP, "was stopped")])
def test_a_rank_that_is_killed_or_stopped_ends_its_group_and_leaves_no_process(
    pair: Placement, by: signal.Signals, what: str
) -> None:
    source = GeneratedSource("normal", 1_000_000, 0, DTYPES["float32"], {})
    before = set(psutil.Process().children(recursive=True))
    ranks = pair.available
    group = ProcessGroup(processes(Mode.PROCESS_PER_RANK, ranks, Carrier.PEER_ACCESS), pair.environment(Algorithm.RING))
    group.run(Load(source, Method.EXACT))
    pid = group.pids[-1]
    assert pid is not None
    os.kill(pid, by)
    began = time.monotonic()
    with pytest.raises(RankLost, match=what):
        group.run(Sample(3))
    assert time.monotonic() - began < 30
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [process for process in left if process.pid in group.pids]


@contextmanager
def beside(program: str) -> Iterator[None]:
    """A process that uses the last GPU in its own way, from when it has printed a line."""
    script = f"import time\nimport cupy\nwith cupy.cuda.Device(cupy.cuda.runtime.getDeviceCount() - 1):\n{program}"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


FULL = """
    free = cupy.cuda.runtime.memGetInfo()[0]
    kept = cupy.cuda.runtime.malloc(free - (LEFT << 20))
    print("ready", flush=True)
    time.sleep(600)
"""
BUSY = """
    x = cupy.ones(1 << 26, "float32")
    x += 1
    print("ready", flush=True)
    while True:
        for _ in range(100):
            x += 1
        cupy.cuda.runtime.deviceSynchronize()
"""


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="it fills a GPU that other tests use: run it alone")
@pytest.mark.parametrize("left", [64, 2048])
def test_a_gpu_that_is_full_skips_or_fails_its_points_and_says_why(pair: Placement, left: int) -> None:
    ranks = pair.available
    study = Study(
        sizes=(ranks << 30,), ranks=(ranks,), methods=(Method.EXACT,), algorithms=(Algorithm.AUTO,), samples=3
    )
    with beside(FULL.replace("LEFT", str(left))):
        records = [record for record in run(pair, study) if isinstance(record, ArrayRecord) and record.ranks == ranks]
    assert len(records) == 2
    for record in records:
        assert record.outcome in {Outcome.SKIPPED, Outcome.FAILED}
        assert "memory" in (record.reason or "").lower() or "free" in (record.reason or "")


def test_a_gpu_that_others_keep_busy_changes_no_bit(pair: Placement) -> None:
    study = Study(
        sizes=(10_000_000,),
        methods=(Method.EXACT,),
        algorithms=(Algorithm.AUTO,),
        ranks=(pair.available,),
        samples=10,
    )
    with beside(BUSY):
        records = [record for record in run(pair, study) if isinstance(record, ArrayRecord) and record.ranks > 1]
    assert [(record.outcome, record.same_bits) for record in records] == [(Outcome.MEASURED, True)] * 2


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


def test_the_gang_keeps_its_gpus_open_for_its_next_job_and_single_gpus_do_not_wait_for_that(
    pair: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPFOLD_GANG_OPEN_S", "300")
    array = {"type": "generate", "distribution": "normal", "n": 1 << 24, "seed": 3}
    along = {"kind": "reduce", "op": "sum", "backend": "gang", "source": {**array, "shape": [256, 1 << 16]}, "axis": 1}
    whole = {"kind": "reduce", "op": "sum", "backend": "cuda", "source": array}
    with folder() as root:
        (root / "data").mkdir()
        slots = ("--slots", "cuda:0,gang,cpu")
        with running_service(Path(root), *slots) as service, Client(service.url, service.token) as client:
            jobs = [client.wait(client.submit(spec), timeout_s=240) for spec in (along, along, whole)]
    assert {job.status for job in jobs} == {"succeeded"}, [job.error for job in jobs]
    first, again, single = (job.result for job in jobs)
    assert isinstance(first, ReduceArrayResult)
    assert isinstance(again, ReduceArrayResult)
    assert isinstance(single, ReduceResult)
    assert again.timings.total_ms < first.timings.total_ms / 2
    assert again.values == first.values
    assert single.timings.queued_ms < 60_000, "the GPUs that the gang keeps open are free for others"
