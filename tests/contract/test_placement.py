"""The time that a reduction is predicted to take, with the rates of an H200 and of the 16 cores beside it."""

import pytest

from tests.support.rates import CPU, H200
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
