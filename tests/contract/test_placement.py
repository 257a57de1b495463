"""The time that a reduction is predicted to take, with the rates of an H200 and of the 16 cores beside it."""

import os
from pathlib import Path

import pytest

from tests.support.rates import CPU, H200
from warpfold.contract.folders import Folders, dataset_file
from warpfold.contract.jobs import job_spec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.placement import UNKNOWN_BYTES, RatesView, Work
from warpfold.kernels.dtypes import DTYPES


@pytest.mark.parametrize(
    ("lies", "rates", "bound", "gb_per_s"),
    [
        ("host", CPU, "reduce", 50.0),
        ("host", H200, "read", 38.0),
        ("made", CPU, "generate", 5.0),
        ("made", H200, "generate", 1400.0),
        ("request", CPU, "reduce", 50.0),
        ("request", H200, "copy", 55.0),
    ],
)
def test_the_slowest_way_that_the_elements_go_bounds_the_time(
    lies: str, rates: RatesView, bound: str, gb_per_s: float
) -> None:
    run = Work.model_validate({"lies": lies, "bytes": 10**9}).predicted(rates)
    assert (run.bound, run.gb_per_s) == (bound, gb_per_s)
    assert run.seconds == pytest.approx(rates.overhead_s + 1 / gb_per_s)


def test_a_file_of_unknown_length_counts_as_long() -> None:
    assert Work(lies="host", bytes=None).predicted(CPU) == Work(lies="host", bytes=UNKNOWN_BYTES).predicted(CPU)


@pytest.mark.parametrize(
    ("source", "lies", "nbytes"),
    [
        ({"type": "values", "values": [1.5, 2.5]}, "request", 16),
        ({"type": "generate", "distribution": "normal", "n": 10**6, "dtype": "float32"}, "made", 4 * 10**6),
        ({"type": "path", "path": "x.npy"}, "host", None),
        ({"type": "dataset", "id": "0" * 64}, "host", None),
        ({"type": "table", "path": "x.parquet"}, "host", None),
        ({"type": "files", "glob": "*.npy"}, "host", None),
    ],
)
def test_a_spec_tells_what_it_has_to_move(source: dict[str, object], lies: str, nbytes: int | None) -> None:
    spec = job_spec.validate_python({"kind": "reduce", "op": "sum", "source": source})
    assert isinstance(spec, ReduceSpec)
    assert spec.work() == Work.model_validate({"lies": lies, "bytes": nbytes})


def test_the_size_of_one_file_or_dataset_is_known_by_a_look(tmp_path: Path) -> None:
    roots, datasets = tmp_path / "data", tmp_path / "datasets"
    roots.mkdir()
    (roots / "x.npy").write_bytes(bytes(1000))
    (tmp_path / "secret.npy").write_bytes(bytes(7))
    (roots / "link.npy").symlink_to(tmp_path / "secret.npy")
    (roots / "x.zarr").mkdir()
    os.mkfifo(roots / "pipe")
    stored = dataset_file(datasets, "0" * 64)
    stored.parent.mkdir(parents=True)
    stored.write_bytes(bytes(300))
    folders = Folders((roots,), datasets)
    for source, nbytes in (
        ({"type": "path", "path": "x.npy"}, 1000),
        ({"type": "array", "path": "x.npy"}, 1000),
        ({"type": "table", "path": "x.npy"}, 1000),
        ({"type": "dataset", "id": "0" * 64}, 300),
        ({"type": "dataset", "id": "1" * 64}, None),
        ({"type": "path", "path": "link.npy"}, None),
        ({"type": "path", "path": "pipe"}, None),
        ({"type": "array", "path": "x.zarr"}, None),
        ({"type": "path", "path": "none.npy"}, None),
        ({"type": "path", "path": "https://data.example/x.npy"}, None),
        ({"type": "files", "glob": "*.npy"}, None),
    ):
        spec = job_spec.validate_python({"kind": "reduce", "op": "sum", "source": source})
        assert isinstance(spec, ReduceSpec)
        assert spec.work(folders) == Work(lies="host", bytes=nbytes), source
    both = job_spec.validate_python(
        {
            "kind": "reduce",
            "op": "dot",
            "source": {"type": "path", "path": "x.npy"},
            "other": {"type": "generate", "distribution": "normal", "n": 1000, "dtype": "float64"},
        }
    )
    assert isinstance(both, ReduceSpec)
    assert both.work(folders) == Work(lies="host", bytes=9000)


def test_two_sources_lie_where_the_slower_of_them_does() -> None:
    made = {"type": "generate", "distribution": "normal", "n": 1000, "dtype": "float64"}
    both = job_spec.validate_python({"kind": "reduce", "op": "dot", "source": made, "other": {**made, "seed": 1}})
    assert isinstance(both, ReduceSpec)
    assert both.work() == Work(lies="made", bytes=2000 * DTYPES["float64"].itemsize)
    file = job_spec.validate_python(
        {"kind": "reduce", "op": "dot", "source": made, "other": {"type": "path", "path": "x.npy"}}
    )
    assert isinstance(file, ReduceSpec)
    assert file.work() == Work(lies="host", bytes=None)


def test_rates_of_another_version_are_none() -> None:
    assert RatesView.stored(None) is None
    assert RatesView.stored({"read": 1}) is None
    assert RatesView.stored(CPU.model_dump()) == CPU
