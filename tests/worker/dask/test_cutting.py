"""Reductions along axes and by segments on a Dask cluster beside the same on a CPU slot."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.support.leases import lease_on
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts import array_parts
from warpfold.worker.dask.cutting import cut
from warpfold.worker.execute import Kernels

CUBE: dict[str, Any] = {
    "type": "generate", "distribution": "normal", "n": 6 * 20 * 15, "dtype": "float64", "seed": 7, "shape": [6, 20, 15]
}  # fmt: skip
OPS = (
    *("sum", "mean", "norm1", "norm2", "sum_squares", "var", "std"),
    *("min", "max", "norm_inf", "argmin", "argmax", "count_nonzero", "any", "all"),
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are cut as large ones are, whose states are few bytes beside their elements."""
    monkeypatch.setattr(array_parts, "_STATE_BYTES", 0)


def run(kernels: Kernels, **spec: Any) -> ReduceArrayResult:
    request = lease_on(json.dumps({"kind": "reduce", **spec}))
    return ReduceArrayResult.model_validate(kernels.run(request, lambda news: None).result)


def alike(left: ReduceArrayResult, right: ReduceArrayResult) -> bool:
    names = [
        "shape",
        "values",
        "hex",
        "decimal",
        "fraction",
        "dtype",
        "count",
        "counts",
        "nulls",
        "op",
        "correctly_rounded",
    ]
    different = [name for name in names if repr(getattr(left, name)) != repr(getattr(right, name))]
    assert not different, [(name, getattr(left, name), getattr(right, name)) for name in different]
    return True


def both(cluster: Kernels, alone: Kernels, partitions: int = 7, **asked: Any) -> ReduceArrayResult:
    spread = run(cluster, backend="dask", partitions=partitions, **asked)
    assert alike(spread, run(alone, **asked))
    return spread


@pytest.mark.parametrize("op", OPS)
def test_every_op_gives_the_bits_of_one_slot_along_every_axis(spreading: Kernels, alone: Kernels, op: str) -> None:
    for axis in (0, [0, 2]):
        both(spreading, alone, op=op, source=CUBE, axis=axis)


@pytest.mark.parametrize("axis", [1, 2, -1, [0, 1], [1, 2], [0, 1, 2]])
def test_axes_that_partitions_share_and_axes_that_they_do_not(spreading: Kernels, alone: Kernels, axis: Any) -> None:
    for partitions in (2, 9, 100):
        both(spreading, alone, partitions, op="mean", source=CUBE, axis=axis)
    both(spreading, alone, op="argmax", source=CUBE, axis=axis, keepdims=True)


def test_nans_zeros_and_integers_are_compared_as_on_one_slot(
    spreading: Kernels, alone: Kernels, tmp_path: Path
) -> None:
    random = np.random.default_rng(3)
    cube = random.choice([-0.0, 0.0, np.nan, 1.0, -2.0], size=(40, 30))
    whole = random.integers(-(1 << 62), 1 << 62, size=(40, 30))
    np.save(tmp_path / "cube.npy", cube)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(cube))
    np.save(tmp_path / "whole.npy", whole)
    np.save(tmp_path / "bool.npy", whole > 0)
    for name in ("cube", "fortran", "whole", "bool"):
        for op in ("min", "max", "norm_inf", "argmin", "argmax", "count_nonzero", "any", "sum", "mean"):
            source = {"type": "path", "path": f"{name}.npy"}
            for policy in ("propagate", "omit"):
                both(spreading, alone, op=op, source=source, axis=0, nan_policy=policy)
    for axis in (0, 1):  # 1: every value lies in one partition
        both(spreading, alone, op="mean", source={"type": "path", "path": "whole.npy"}, axis=axis, digits=30)


@pytest.mark.parametrize(
    "segments", [{"length": 7}, {"length": 1000}, {"offsets": [0, 3, 3, 3, 1500, 1500, 1790, 1800]}]
)
def test_segments_are_cut_between_and_within(spreading: Kernels, alone: Kernels, segments: Any) -> None:
    for op in ("sum", "var", "argmin", "max"):
        for partitions in (3, 11):
            both(spreading, alone, partitions, op=op, source=CUBE, segments=segments)


def test_segments_of_many_files_open_the_files_of_their_part(
    spreading: Kernels, alone: Kernels, tmp_path: Path
) -> None:
    for name, size in (("a", 100), ("b", 1000), ("c", 37)):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(size).standard_normal(size))
    source = {"type": "files", "glob": "*.npy"}
    both(spreading, alone, 5, op="mean", source=source, segments={"length": 90})
    both(spreading, alone, 5, op="mean", source=source, segments={"offsets": [50, 900, 1100]})


def test_few_long_rows_are_cut_into_panels_where_they_are_in_memory(
    spreading: Kernels, alone: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_parts, "_STATE_BYTES", 64)
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((3, 9000)).astype(np.float32))
    source = {"type": "path", "path": "x.npy"}
    result = both(spreading, alone, 8, op="mean", source=source, axis=0)
    assert result.partitions is not None
    assert result.partitions.partitions == 8
    np.save(tmp_path / "cube.npy", np.random.default_rng(2).standard_normal((4, 3, 500)))
    both(spreading, alone, 8, op="mean", source={"type": "path", "path": "cube.npy"}, axis=1)
    made = both(spreading, alone, 8, op="mean", source=CUBE | {"shape": [2, 900]}, axis=0)
    assert made.partitions is not None
    assert made.partitions.partitions == 1


def test_dot_products_along_an_axis_and_other_shapes(spreading: Kernels, alone: Kernels) -> None:
    both(spreading, alone, op="dot", source=CUBE, other=CUBE | {"seed": 8}, axis=[0, 1])


def test_what_is_decoded_in_order_is_one_partition(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.arange(600.0).reshape(20, 30))
    source = {"type": "array", "path": "x.npz"}
    result = both(spreading, alone, op="sum", source=source, axis=0)
    assert result.partitions is not None
    assert result.partitions.partitions == 1


def test_large_tables_of_states_are_merged_on_workers_first(
    spreading: Kernels, alone: Kernels, merges: list[int]
) -> None:
    result = both(spreading, alone, 60, op="var", source=CUBE, axis=[0, 1])
    assert 3 in merges
    assert result.partitions is not None
    assert sum(worker.partitions for worker in result.partitions.workers) == result.partitions.partitions


def test_partitions_are_larger_where_a_scheduler_would_not_keep_all_workers_busy(tmp_path: Path) -> None:
    source = {"type": "generate", "distribution": "normal", "n": 1 << 40, "dtype": "float64"}
    spec = ReduceSpec.model_validate({"kind": "reduce", "op": "sum", "backend": "dask", "source": source})
    numbers = [len(cut(spec, Folders((), tmp_path), workers).partitions) for workers in (1, 50, 100, 1000)]
    assert numbers == [65536, 65536, 32768, 4000]


def test_nulls_propagate_along_an_axis(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    column = pyarrow.array([None if at == 50 else at / 2 for at in range(300)])
    parquet.write_table(pyarrow.table({"x": column}), tmp_path / "x.parquet", row_group_size=60)
    source = {"type": "table", "path": "x.parquet", "null_policy": "propagate"}
    result = both(spreading, alone, op="sum", source=source, segments={"length": 100})
    assert result.nulls == 1
    assert result.values is not None
    assert result.values[0] is None


def test_a_field_that_is_at_fault_is_named(spreading: Kernels, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 4)))
    with pytest.raises(InvalidInput, match="there is no axis 3") as refused:
        run(spreading, op="sum", backend="dask", source={"type": "path", "path": "x.npy"}, axis=3)
    assert refused.value.field == "axis"
