"""The GPU as a backend: sources, policies, pieces, errors."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.exactly import agrees, expected
from warpfold.kernels.backend import Reduction
from warpfold.kernels.catalog import strategies
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.staging import stager
from warpfold.kernels.cuda.strategies.registry import baselines
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput, OutOfMemory, Unavailable
from warpfold.kernels.exact.encoding import ORIGIN
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, NanPolicy, Terms
from warpfold.kernels.source import ArraySource, GeneratedSource

NAMES = [row.name for row in strategies() if row.backend == "cuda" and row.name not in baselines()]


def elements(array: NDArray[Any]) -> list[Any]:
    """As Python numbers."""
    listed: list[Any] = (array if array.dtype.kind in "iub" else array.astype(np.float64)).tolist()
    return listed


def some(dtype: DType, size: int, random: np.random.Generator) -> NDArray[Any]:
    """Normal floats, or integers over the whole range."""
    if dtype.is_float:
        return random.standard_normal(size).astype(dtype.numpy)
    return np.array(
        [
            random.integers(*dtype.bounds, dtype=np.uint64 if dtype.bounds[0] == 0 else np.int64, endpoint=True)
            for _ in range(size)
        ]
    ).astype(dtype.numpy)


def test_the_device_is_described_by_the_driver(backend: CudaBackend) -> None:
    device = backend.device
    (seen,) = [row for row in visible_devices() if row.index == device.index]
    assert (device.name, device.uuid, device.cores) == (seen.name, seen.uuid, seen.cores)
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device.uuid or "")
    assert device.compute_capability == seen.compute_capability
    assert {"cuda_driver", "cuda_runtime", "cupy", "nvrtc"} <= {name for name, _ in device.versions}


def test_a_device_that_is_not_there_is_unavailable(backend: CudaBackend) -> None:
    with pytest.raises(Unavailable, match="no CUDA device 99"):
        CudaBackend(99)


@pytest.mark.parametrize("name", NAMES)
def test_every_strategy_reduces_every_pair_it_claims(backend: CudaBackend, name: str) -> None:
    (row,) = [row for row in strategies() if row.backend == "cuda" and row.name == name]
    random, wrong = np.random.default_rng(11), []
    for op, dtype in sorted(row.claims):
        if OPS[op].sources == 2 or OPS[op].terms is Terms.MOMENTS or OPS[op].ranks:
            continue  # tests/gpu/test_identity.py, test_ranks.py and test_picks.py have those
        kind = DTYPES[dtype]
        array = some(kind, 1000, random)
        want = expected(OPS[op], elements(array))
        assert want is not None
        try:
            result = backend.reduce(ArraySource(array), op, strategy=name)
        except Unavailable as error:
            pytest.skip(str(error))
        assert (result.op, result.strategy, result.count) == (op, name, 1000)
        assert result.dtype == OPS[op].result_dtype(kind)
        if not agrees(result.value, want, OPS[op], kind, strategy=name, count=1000):
            wrong.append((op, dtype, result.value, want.value, float(want.exact)))
    assert wrong == []


def test_auto_is_exact_where_something_is_added(backend: CudaBackend) -> None:
    result = backend.reduce(ArraySource(np.array([1e8, 1, -1e8], np.float32)), "sum")
    assert (result.value, result.strategy, result.correctly_rounded) == (1.0, "exact", True)
    assert result.state is not None
    assert ExactState.from_bytes(result.state) == ExactState.empty(Terms.VALUES).add(
        np.array([1e8, 1, -1e8], np.float32)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [name for name, row in OPS.items() if row.terms in ORIGIN and row.sources == 1])
def test_the_exact_state_is_the_one_that_numpy_gives(backend: CudaBackend, op: str, dtype: str) -> None:
    row = DTYPES[dtype]
    source = GeneratedSource("all_exponents" if row.is_float else "uniform", 5000, 3, row)
    result = backend.reduce(source, op, strategy="exact")
    want = ExactState.empty(OPS[op].terms).add(source.read(0, 5000), magnitudes=op == "norm1")
    assert result.state is not None
    assert ExactState.from_bytes(result.state) == want


def test_nothing_reduces_to_the_empty_value(backend: CudaBackend) -> None:
    empty = ArraySource(np.empty(0, np.float32))
    assert backend.reduce(empty, "sum").value == 0.0
    assert backend.reduce(empty, "prod").value == 1.0
    assert backend.reduce(empty, "any").value is False
    assert backend.reduce(empty, "all").value is True
    for op in ("mean", "min", "argmax"):
        with pytest.raises(InvalidInput, match="no elements"):
            backend.reduce(empty, op)


@pytest.mark.parametrize("name", ["exact", "single_pass", "compensated", "cupy"])
def test_nan_policies(backend: CudaBackend, name: str) -> None:
    array = np.array([math.nan, 2.0, -3.0, math.nan, 0.5], np.float32)
    for op in ("sum", "mean", "norm1", "norm2"):
        kept = backend.reduce(ArraySource(array), op, strategy=name)
        assert math.isnan(float(kept.value))
        assert kept.count == 5
        left = backend.reduce(ArraySource(array), op, strategy=name, nan_policy=NanPolicy.OMIT)
        want = expected(OPS[op], elements(array), omit_nan=True)
        assert want is not None
        assert agrees(left.value, want, OPS[op], DTYPES["float32"], strategy=name, count=3)
        assert left.count == 3
        with pytest.raises(InvalidInput, match="element 0 is NaN"):
            backend.reduce(ArraySource(array), op, strategy=name, nan_policy=NanPolicy.RAISE)


@pytest.mark.parametrize("name", ["single_pass", "cupy"])
def test_the_first_nan_is_the_extremum_unless_left_out(backend: CudaBackend, name: str) -> None:
    array = np.array([1.0, math.inf, math.nan, -2.0, math.nan], np.float64)
    source = ArraySource(array)
    for op, without in (("argmin", 3), ("argmax", 1)):
        assert backend.reduce(source, op, strategy=name).value == 2
        assert backend.reduce(source, op, strategy=name, nan_policy=NanPolicy.OMIT).value == without
    only_nan = ArraySource(array[2:3])
    with pytest.raises(InvalidInput, match="no elements"):
        backend.reduce(only_nan, "min", strategy=name, nan_policy=NanPolicy.OMIT)


def test_an_infinity_beside_nan_is_found_by_its_place(backend: CudaBackend) -> None:
    source = ArraySource(np.array([math.nan, math.inf, math.inf], np.float32))
    assert backend.reduce(source, "argmin", nan_policy=NanPolicy.OMIT).value == 1


@pytest.mark.parametrize("op", ["sum", "mean", "sum_squares", "min", "argmin", "argmax", "count_nonzero", "prod"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "uint64"])
def test_pieces_make_no_difference_beyond_rounding(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch, op: str, dtype: str
) -> None:
    row = DTYPES[dtype]
    if op == "prod" and not row.is_float:
        pytest.skip("not claimed")
    array = some(row, 5001, np.random.default_rng(23))
    want = expected(OPS[op], elements(array))
    assert want is not None
    monkeypatch.setattr(stager, "COPIED_BYTES", 1 << 10)
    seen: list[tuple[int, int]] = []
    result = backend.reduce(
        ArraySource(array), op, strategy="single_pass", progress=lambda done, total: seen.append((done, total))
    )
    assert agrees(result.value, want, OPS[op], row, strategy="single_pass", count=5001)
    assert seen[-1] == (5001, 5001)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_memory_map_is_read_piece_by_piece(
    backend: CudaBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.arange(100_000, dtype=np.int32).reshape(100, 1000))
    monkeypatch.setattr(stager, "COPIED_BYTES", 1 << 12)
    source = ArraySource(np.load(tmp_path / "x.npy", mmap_mode="r"))
    result = backend.reduce(source, "sum")
    assert (result.value, result.dtype) == (sum(range(100_000)), "integer")


def test_progress_may_stop_a_reduction(backend: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done:
            raise Stop

    monkeypatch.setattr(stager, "COPIED_BYTES", 1 << 10)
    source = ArraySource(np.ones(100_000, np.float32))
    with pytest.raises(Stop):
        backend.reduce(source, "sum", strategy="single_pass", progress=stop)
    assert backend.reduce(source, "sum", strategy="single_pass").value == 100_000.0


def test_what_must_lie_in_memory_as_a_whole_says_how_much_there_is(backend: CudaBackend) -> None:
    source = GeneratedSource("zeros", 10**12, 0, DTYPES["float64"])
    with pytest.raises(OutOfMemory, match=r"need 8,000,000,000,000 bytes .* of which [\d,]+ are free"):
        backend.reduce(source, "sum", strategy="cupy")


def test_an_array_larger_than_a_piece_is_made_in_pieces(backend: CudaBackend) -> None:
    count = stager.MADE_BYTES // 4 * 3 + 17
    source = GeneratedSource("arange", count, 0, DTYPES["int32"])
    result = backend.reduce(source, "sum", strategy="single_pass")
    assert result.value == count * (count - 1) // 2
    assert result.kernel_ms > 0
    assert backend.reduce(source, "argmax", strategy="single_pass").value == count - 1


def test_times_are_those_of_the_device(backend: CudaBackend) -> None:
    source = GeneratedSource("normal", 1 << 24, 1, DTYPES["float32"])
    results: list[Reduction] = [backend.reduce(source, "sum", strategy="single_pass") for _ in range(3)]
    assert all(0 < result.kernel_ms < 1000 and result.load_ms >= 0 for result in results)
    assert len({result.value for result in results}) == 1


def test_an_unknown_strategy_or_pair_is_refused(backend: CudaBackend) -> None:
    source = ArraySource(np.ones(3, np.int32))
    with pytest.raises(InvalidInput, match="unknown strategy"):
        backend.reduce(source, "sum", strategy="quantum")
    with pytest.raises(InvalidInput, match="does not compute"):
        backend.reduce(source, "sum", strategy="pairwise")
