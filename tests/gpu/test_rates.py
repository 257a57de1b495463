"""The rates of a GPU slot, and where they send work."""

import json
from pathlib import Path

from tests.support.leases import lease_on
from warpfold.contract.folders import Folders
from warpfold.contract.placement import RatesView, Work
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.machine.rates import Rates, measure
from warpfold.worker.execute import Kernels


def measured(backend: CpuBackend | CudaBackend) -> Rates:
    *_, rates = measure(backend)
    assert rates is not None
    return rates


def test_a_gpu_copies_reads_and_reduces_at_plausible_rates(backend: CudaBackend) -> None:
    rates = measured(backend)
    print(rates)
    assert rates.copy_gb_per_s is not None
    assert rates.read_gb_per_s < 1.1 * rates.copy_gb_per_s, "what is read crosses the bus"
    assert rates.copy_gb_per_s < rates.reduce_gb_per_s, "memory of a GPU is faster than its bus"
    assert rates.generate_gb_per_s <= rates.reduce_gb_per_s
    assert 0 < rates.overhead_s < 0.1


def test_copies_of_twice_the_bytes_take_about_twice_the_time(backend: CudaBackend) -> None:
    first, second = backend.copy_seconds(1 << 26), backend.copy_seconds(1 << 27)
    assert 1.5 < min(second() for _ in range(5)) / min(first() for _ in range(5)) < 2.5


def test_what_a_gpu_makes_ends_first_there_whatever_the_machine(backend: CudaBackend) -> None:
    cpu, gpu = (RatesView.model_validate(measured(each), from_attributes=True) for each in (CpuBackend(), backend))
    made = Work(lies="made", bytes=8 << 30)
    assert made.predicted(gpu).seconds < made.predicted(cpu).seconds


def test_a_prediction_is_of_the_size_of_the_time_that_a_job_takes(backend: CudaBackend, tmp_path: Path) -> None:
    slot = Kernels("cuda:0", "here:cuda:0", Folders((), tmp_path), rates_dir=tmp_path / "rates")
    for _ in slot.measuring():
        pass
    rates = RatesView.stored(slot.rates)
    assert rates is not None
    source = {"type": "generate", "distribution": "normal", "n": 1 << 28, "dtype": "float64"}
    lease = lease_on(json.dumps({"kind": "reduce", "op": "sum", "source": source}))
    slot.run(lease, lambda news: None)
    timings = slot.run(lease, lambda news: None).result["timings"]
    predicted_ms = 1e3 * Work(lies="made", bytes=8 << 28).predicted(rates).seconds
    assert isinstance(timings, dict)
    assert predicted_ms / 4 < timings["load_ms"] + timings["kernel_ms"] < 4 * predicted_ms
