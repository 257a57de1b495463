"""The whole service on a machine with a GPU: one answer, whichever slot gives it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.servers import folder
from warpfold.client.api import Client
from warpfold.client.demo.service import Service, running_service
from warpfold.worker.gpu_lock import gpu_count


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """The folder whose files jobs may name."""
    with folder() as root:
        (root / "data").mkdir()
        yield root / "data"


@pytest.fixture(scope="module")
def service(data: Path) -> Iterator[Service]:
    if gpu_count() == 0:
        pytest.skip("no GPU on this machine")
    with running_service(data.parent, "--slots", "cuda:0,cpu") as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as connected:
        yield connected


def _generated(dtype: str, distribution: str = "normal", n: int = 3_000_001) -> dict[str, Any]:
    return {"type": "generate", "distribution": distribution, "n": n, "seed": 7, "dtype": dtype}


@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "norm2", "sum_squares"])
@pytest.mark.parametrize("distribution", ["normal", "all_exponents"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_gpu_slot_and_the_cpu_slot_give_the_same_bits(client: Client, op: str, distribution: str, dtype: str) -> None:
    spec = {"kind": "reduce", "op": op, "strategy": "exact", "source": _generated(dtype, distribution)}
    on = {backend: client.reduction(client.submit({**spec, "backend": backend})) for backend in ("cuda", "cpu")}
    assert on["cuda"].backend == "cuda"
    assert on["cpu"].backend == "cpu"
    assert (on["cuda"].value, on["cuda"].hex, on["cuda"].state) == (on["cpu"].value, on["cpu"].hex, on["cpu"].state)
    assert on["cuda"].correctly_rounded


@pytest.mark.parametrize("op", ["min", "max", "argmin", "argmax", "norm_inf", "count_nonzero", "any", "all"])
def test_what_only_selects_is_the_same_on_both(client: Client, op: str) -> None:
    spec = {"kind": "reduce", "op": op, "source": _generated("float32", "uniform")}
    values = {client.reduction(client.submit({**spec, "backend": on})).value for on in ("cuda", "cpu")}
    assert len(values) == 1


def test_a_file_on_a_gpu_slot_is_told_with_the_stage_that_bounds_it(client: Client, data: Path) -> None:
    np.save(data / "x.npy", np.random.default_rng(1).standard_normal(8_000_000).astype(np.float32))
    pyarrow.parquet.write_table(pyarrow.table({"x": np.arange(100_000.0)}), data / "x.parquet")
    sources: list[tuple[dict[str, Any], set[str]]] = [
        ({"type": "path", "path": "x.npy"}, {"read", "copy", "reduce"}),
        ({"type": "files", "paths": ["x.npy", "x.npy"]}, {"read", "copy", "reduce"}),
        ({"type": "table", "path": "x.parquet"}, {"decode", "copy", "reduce"}),
        ({"type": "values", "values": [1.0, 2.0]}, {"copy", "reduce"}),
        (_generated("float32"), {"read", "reduce"}),
    ]
    for source, stages in sources:
        result = client.reduction(client.submit({"kind": "reduce", "op": "sum", "backend": "cuda", "source": source}))
        timings = result.timings
        assert set(timings.stages) == stages, source
        assert timings.bound == max(timings.stages, key=lambda name: timings.stages[name].seconds)
        for stage in timings.stages.values():
            assert stage.bytes == result.count * (8 if source["type"] in ("table", "values") else 4)
            assert stage.seconds * 1e3 <= timings.total_ms, "stages overlap within the job"


def test_an_idle_gpu_is_preferred(client: Client) -> None:
    assert client.reduction(client.submit({"kind": "reduce", "source": _generated("float32")})).backend == "cuda"
