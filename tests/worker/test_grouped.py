"""Reductions along axes and by segments, as the child of a CPU slot runs them."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.leases import lease_on
from warpfold.app.jobs.attempt import Success
from warpfold.contract.folders import Folders
from warpfold.contract.jobs import result_of
from warpfold.contract.kinds.reduce import ReduceArrayResult
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.execute import Kernels

ARRAY = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data").resolve()
    np.save(root / "c.npy", ARRAY)
    np.save(root / "fortran.npy", np.asfortranarray(ARRAY))
    np.save(root / "none.npy", np.zeros((0, 3)))
    np.savez_compressed(root / "packed.npz", x=ARRAY)
    with h5py.File(root / "packed.h5", "w") as file:
        file.create_dataset("x", data=ARRAY, chunks=(1, 3, 2), compression="gzip")
        file["x"].attrs["_FillValue"] = 23.0
    return root


@pytest.fixture(scope="module")
def cpu(folder: Path) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((folder,), Path("nowhere")), cpu_cache_bytes=8 << 20)


def run(cpu: Kernels, **spec: Any) -> Success:
    return cpu.run(lease_on(json.dumps({"kind": "reduce", **spec})), lambda news: None)


def reduced(cpu: Kernels, **spec: Any) -> ReduceArrayResult:
    result = result_of(json.dumps(run(cpu, **spec).result))
    assert isinstance(result, ReduceArrayResult)
    return result


@pytest.mark.parametrize(
    "source",
    [
        {"type": "path", "path": "c.npy"},
        {"type": "path", "path": "fortran.npy"},
        {"type": "array", "path": "packed.npz"},
        {"type": "array", "path": "packed.h5", "stored": True},
        {"type": "values", "values": ARRAY.reshape(-1).tolist(), "shape": [2, 3, 4]},
    ],
)
def test_every_source_with_a_shape_is_reduced_along_its_axes(cpu: Kernels, source: dict[str, Any]) -> None:
    result = reduced(cpu, source=source, axis=[0, -1], op="mean")
    assert (result.shape, result.values) == ((3,), (7.5, 11.5, 15.5))
    assert result.hex == ("0x1.e000000000000p+2", "0x1.7000000000000p+3", "0x1.f000000000000p+3")
    assert (result.count, result.counts, result.dtype, result.correctly_rounded) == (24, (8, 8, 8), "float64", True)
    assert result.strategy == "exact"
    down = reduced(cpu, source=source, axis=1, keepdims=True)
    assert down.values is not None
    assert (down.shape, down.values[:3]) == ((2, 1, 4), (12.0, 15.0, 18.0))


def test_a_selection_has_the_shape_that_is_selected(cpu: Kernels) -> None:
    for path in ("packed.h5", "c.npy", "packed.npz"):
        source = {"type": "array", "path": path, "select": [None, {"step": 2}, 1], "stored": True}
        result = reduced(cpu, source=source, axis=0)
        assert (result.shape, result.values) == ((2, 1), (1.0 + 13.0, 9.0 + 21.0))


def test_a_null_has_no_place_in_an_array(cpu: Kernels) -> None:
    with pytest.raises(InvalidInput, match="holds a null"):
        run(cpu, source={"type": "array", "path": "packed.h5"}, axis=0)


def test_integers_truths_and_places_have_no_hex(cpu: Kernels) -> None:
    source = {"type": "values", "values": [2**63 - 1, 1, 2**63 - 1, 0], "shape": [2, 2]}
    total = reduced(cpu, source=source, axis=0)
    assert (total.values, total.dtype, total.hex) == ((2**64 - 2, 1), "integer", None)
    truths = reduced(cpu, source=source, axis=1, op="all")
    assert (truths.values, truths.dtype, truths.hex) == ((True, False), "bool", None)
    assert reduced(cpu, source=source, axis=1, op="argmin").values == (1, 1)


def test_an_empty_segment_has_the_empty_value_or_none(cpu: Kernels) -> None:
    source = {"type": "values", "values": [1.0, 2.0, 4.0]}
    segments = {"offsets": [0, 2, 2, 3]}
    assert reduced(cpu, source=source, segments=segments).values == (3.0, 0.0, 4.0)
    most = reduced(cpu, source=source, segments=segments, op="max")
    assert (most.values, most.counts) == ((2.0, None, 4.0), (2, 0, 1))
    assert most.hex == ("0x1.0000000000000p+1", None, "0x1.0000000000000p+2")
    assert reduced(cpu, source={"type": "path", "path": "none.npy"}, axis=0).values == (0.0, 0.0, 0.0)
    assert reduced(cpu, source={"type": "path", "path": "none.npy"}, axis=1).values == ()


def test_a_dot_product_by_rows_reads_both_sources(cpu: Kernels) -> None:
    rows = {"type": "values", "values": [1, 2, 3, 4], "shape": [2, 2]}
    other = {"type": "values", "values": [1.0, 0.5, 2.0**53, 1.0], "shape": [2, 2]}
    assert reduced(cpu, op="dot", source=rows, other=other, axis=1).values == (2.0, float(3 * 2**53 + 4))
    with pytest.raises(InvalidInput, match="two sources of one shape") as refused:
        run(cpu, op="dot", source={"type": "path", "path": "c.npy"}, other=other, axis=1)
    assert refused.value.field == "other"


def test_windows_have_a_value_for_each_element(cpu: Kernels) -> None:
    source = {"type": "values", "values": [1e300, 1.0, 1.0, 2.0, 3.0, 4.0]}
    windowed = reduced(cpu, source=source, window={"rows": 2})
    assert windowed.values == (None, 1e300, 2.0, 3.0, 5.0, 7.0)
    assert (windowed.shape, windowed.count, windowed.counts, windowed.kernel) == (
        (6,),
        6,
        (1, 2, 2, 2, 2, 2),
        "rolling",
    )
    along = reduced(cpu, source={"type": "path", "path": "fortran.npy"}, op="max", axis=1, window={"expanding": True})
    assert along.shape == ARRAY.shape
    assert along.values == tuple(np.maximum.accumulate(ARRAY, axis=1).reshape(-1).tolist())
    integers = {"type": "values", "values": [2**62, 2**62, 2**62, -1], "dtype": "int64"}
    assert reduced(cpu, source=integers, window={"expanding": True}).values == (2**62, 2**63, 3 * 2**62, 3 * 2**62 - 1)


def test_a_null_makes_the_values_null_whose_windows_have_it(cpu: Kernels, folder: Path) -> None:
    parquet.write_table(pa.table({"x": [1.0, None, 3.0, 4.0, 5.0]}), folder / "nulls.parquet")
    source = {"type": "table", "path": "nulls.parquet", "column": "x"}
    kept = reduced(cpu, source={**source, "null_policy": "propagate"}, window={"rows": 2, "min_count": 1})
    assert (kept.values, kept.counts, kept.nulls) == ((1.0, None, None, 7.0, 9.0), (1, 1, 1, 2, 2), 1)
    with pytest.raises(InvalidInput, match="null"):
        run(cpu, source=source, window={"rows": 2})


def test_instants_have_no_windows_so_far(cpu: Kernels, folder: Path) -> None:
    parquet.write_table(pa.table({"x": pa.array([1, 2], pa.timestamp("s"))}), folder / "times.parquet")
    with pytest.raises(InvalidInput, match="a window that moves along an array takes no") as refused:
        run(cpu, source={"type": "table", "path": "times.parquet", "column": "x"}, op="max", window={"rows": 2})
    assert refused.value.field == "source"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"source": {"type": "path", "path": "c.npy"}, "axis": 3}, "axis", "there is no axis 3: the array has 3 axes"),
        (
            {"source": {"type": "path", "path": "c.npy"}, "segments": {"offsets": [0, 25]}},
            "segments.offsets.1",
            "25 is beyond the 24 elements",
        ),
    ],
)
def test_what_only_the_file_tells_fails_the_job_with_its_field(
    cpu: Kernels, fields: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        run(cpu, **fields)
    assert refused.value.field == field


def test_a_job_leaves_a_measured_point(cpu: Kernels) -> None:
    [point] = run(cpu, source={"type": "path", "path": "c.npy"}, axis=0).points
    assert (point.n, point.bytes, point.op, point.strategy, point.value) == (24, 192, "sum", "exact", None)
