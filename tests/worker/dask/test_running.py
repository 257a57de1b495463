"""Reductions on a Dask cluster beside the same on a CPU slot: partitions change no bit, and faults name a partition."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.leases import lease_on
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.worker.dask import device, task
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import News, Progress

NORMAL: dict[str, Any] = {"type": "generate", "distribution": "normal", "n": 100_003, "dtype": "float64", "seed": 7}
OPS = (
    *("sum", "mean", "norm1", "norm2", "sum_squares", "var", "std"),
    *("min", "max", "norm_inf", "argmin", "argmax", "count_nonzero", "any", "all"),
)


def run(kernels: Kernels, heard: list[News] | None = None, **spec: Any) -> ReduceResult:
    request = lease_on(json.dumps({"kind": "reduce", **spec}))
    tell = (lambda news: None) if heard is None else heard.append
    return ReduceResult.model_validate(kernels.run(request, tell).result)


def spread(kernels: Kernels, heard: list[News] | None = None, **spec: Any) -> ReduceResult:
    return run(kernels, heard, backend="dask", **spec)


def alike(left: ReduceResult, right: ReduceResult) -> bool:
    names = ("value", "hex", "decimal", "fraction", "dtype", "count", "nulls", "op", "correctly_rounded")
    same = all(repr(getattr(left, name)) == repr(getattr(right, name)) for name in names)
    return same and (left.state == right.state or left.decimal is not None)  # a value with digits comes without a state


@pytest.mark.parametrize("op", OPS)
def test_every_op_gives_the_bits_of_one_slot(spreading: Kernels, alone: Kernels, op: str) -> None:
    assert alike(spread(spreading, op=op, source=NORMAL, partitions=7), run(alone, op=op, source=NORMAL))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_every_kind_of_element_gives_the_bits_of_one_slot(spreading: Kernels, alone: Kernels, dtype: str) -> None:
    source = {"type": "generate", "distribution": "uniform", "n": 5000, "dtype": dtype}
    for op in ("sum", "mean", "std", "argmax", "min"):
        assert alike(spread(spreading, op=op, source=source, partitions=3), run(alone, op=op, source=source))
    if dtype != "float16":
        digits: dict[str, Any] = {"op": "mean", "source": source, "digits": 25}
        assert alike(spread(spreading, partitions=3, **digits), run(alone, **digits))


def test_a_dot_product_reads_both_sources_in_the_same_partitions(spreading: Kernels, alone: Kernels) -> None:
    asked: dict[str, Any] = {"op": "dot", "source": NORMAL, "other": NORMAL | {"seed": 8, "dtype": "float32"}}
    assert alike(spread(spreading, partitions=4, **asked), run(alone, **asked))


def test_files_are_cut_within_and_between(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).standard_normal(60_000)
    numbers[[7, 40_000]] = np.nan
    for name, part in (("a", numbers[:1000]), ("b", numbers[1000:50_000]), ("c", numbers[50_000:])):
        np.save(tmp_path / f"{name}.npy", part)
    source = {"type": "files", "glob": "*.npy"}
    for op, policy in (("sum", "omit"), ("argmax", "omit"), ("argmin", "propagate"), ("min", "omit")):
        asked: dict[str, Any] = {"op": op, "nan_policy": policy, "source": source}
        assert alike(spread(spreading, partitions=5, **asked), run(alone, **asked))
    result = spread(spreading, source=source)
    assert result.input is not None
    assert [file.name for file in result.input.files] == ["a.npy", "b.npy", "c.npy"]
    mapped = {"type": "path", "path": "b.npy"}
    assert alike(spread(spreading, op="mean", source=mapped, partitions=3), run(alone, op="mean", source=mapped))


def test_row_groups_are_partitions_and_nulls_are_counted(spreading: Kernels, alone: Kernels, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values: list[float | None] = np.random.default_rng(4).standard_normal(200_000).tolist()
    values[5] = values[150_000] = None
    parquet.write_table(pa.table({"x": values}), tmp_path / "x.parquet", row_group_size=70_000)
    source = {"type": "table", "path": "x.parquet", "column": "x"}
    result = spread(spreading, op="mean", source=source, partitions=3)
    assert alike(result, run(alone, op="mean", source=source))
    assert result.nulls == 2
    assert result.partitions is not None
    assert result.partitions.partitions == 3
    first_or_last = (
        r"partition (1 of 3 \(sections 0 to 0|3 of 3 \(sections 2 to 2) of the table x.parquet.*a null in 'x'"
    )
    with pytest.raises(InvalidInput, match=first_or_last):
        spread(spreading, op="argmin", source=source, partitions=3)


def test_the_result_tells_who_did_how_much_and_progress_is_bytes(spreading: Kernels, scheduler: str) -> None:
    heard: list[News] = []
    result = spread(spreading, heard, source=NORMAL, partitions=6)
    assert result.backend == result.device.backend == "dask"
    assert result.placement is None
    summary = result.partitions
    assert summary is not None
    assert (summary.scheduler, summary.partitions, summary.repeated) == (scheduler, 6, 0)
    assert sum(worker.partitions for worker in summary.workers) == 6
    assert sum(worker.bytes for worker in summary.workers) == 8 * NORMAL["n"]
    assert all(worker.busy_s > 0 and worker.backend == "cpu" for worker in summary.workers)
    steps = [news for news in heard if isinstance(news, Progress)]
    assert (steps[-1].done, steps[-1].total, steps[-1].unit) == (8 * 100_003, 8 * 100_003, "bytes")


def test_nothing_and_one_element_are_reduced(spreading: Kernels, alone: Kernels) -> None:
    nothing = NORMAL | {"n": 0}
    assert alike(spread(spreading, source=nothing), run(alone, source=nothing))
    with pytest.raises(InvalidInput, match="min of no elements is undefined"):
        spread(spreading, op="min", source=nothing)
    one_value = {"type": "values", "values": [2.5]}
    assert alike(spread(spreading, op="max", source=one_value, partitions=9), run(alone, op="max", source=one_value))


def test_a_variance_needs_its_freedom_as_a_whole_and_not_in_a_partition(spreading: Kernels, alone: Kernels) -> None:
    few = NORMAL | {"n": 5}
    asked: dict[str, Any] = {"op": "var", "ddof": 3, "source": few}
    assert alike(spread(spreading, partitions=5, **asked), run(alone, **asked))


def test_a_nan_that_is_refused_is_named_with_its_partition(spreading: Kernels, tmp_path: Path) -> None:
    numbers = np.ones(1000)
    numbers[700] = np.nan
    np.save(tmp_path / "x.npy", numbers)
    with pytest.raises(InvalidInput, match=r"partition 3 of 4 \(elements 500 to 749\): element 200 is NaN") as refused:
        spread(spreading, source={"type": "path", "path": "x.npy"}, nan_policy="raise", partitions=4)
    assert refused.value.field == "nan_policy"


def test_a_partition_that_cannot_be_read_is_named(
    spreading: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", np.ones(10))
    opened = task._open

    def gone(partition: task.Partition, folders: Any) -> Any:
        if partition.number == 1:
            (tmp_path / "b.npy").unlink()
        return opened(partition, folders)

    monkeypatch.setattr(task, "_open", gone)
    with pytest.raises(
        InvalidInput, match=r"partition 2 of 3 \(elements 10 to 19, in 'b.npy'\): 'b.npy' .*no such file"
    ):
        spread(spreading, source={"type": "files", "paths": ["a.npy", "b.npy", "c.npy"]}, partitions=3)


def test_a_worker_of_another_version_is_refused_with_both_named(
    spreading: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpfold.worker.dask.running.own_version", lambda: "9.9.9")
    own = device.own_version()
    with pytest.raises(Unavailable, match=f"Dask worker inproc://.* has warpfold {own}, and the slot has 9.9.9"):
        spread(spreading, source=NORMAL)


def test_the_next_job_is_served_after_one_that_failed(spreading: Kernels, alone: Kernels) -> None:
    with pytest.raises(InvalidInput):
        spread(spreading, source={"type": "path", "path": "nowhere.npy"})
    assert alike(spread(spreading, source=NORMAL, partitions=2), run(alone, source=NORMAL))
