"""Results of all kinds, told apart."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from warpfold.client import job_results
from warpfold.client.answer import Answer
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.kinds.benchmark import BenchmarkResult
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.profile import ProfileResult
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult

ADAPTER: TypeAdapter[Any] = TypeAdapter(job_results.Result)
EXAMPLE: dict[str, Any] = ReduceResult.model_json_schema()["examples"][0]
COMMON: dict[str, Any] = {name: EXAMPLE[name] for name in ("backend", "device", "provenance")}
COUNTS = {"measured": 1, "skipped": 0, "failed": 0}
TIMES = {"timings": {"queued_ms": 1.0, "total_ms": 2.0}}


def of_the_service(model: type[Any], /, **fields: Any) -> Any:
    """As the service writes it: what the model does not allow is an error here."""
    return model.model_validate({**COMMON, **fields}).model_dump(mode="json")


@pytest.mark.parametrize(
    ("served", "read"),
    [
        (EXAMPLE, job_results.ReduceResult),
        (
            of_the_service(BenchmarkResult, cases=1, **COUNTS, suspect=0, ceiling_gbps=None, peak_gbps=None, **TIMES),
            job_results.BenchmarkResult,
        ),
        (
            of_the_service(
                ClusterResult,
                **{"puzzle": "reduction", "size": 1024, "threads": 256, "cluster_size": 4, "values": [523776.0]},
                **{"texts": ["523776.0"], "hex": ["0x1.ff8p+18"], "model": True, "why_model": "a CPU has no clusters"},
                **{"same_bits_as_model": True, "checks": [], "timings": EXAMPLE["timings"]},
            ),
            job_results.ClusterResult,
        ),
        (
            of_the_service(
                ScalingResult,
                **{"dtype": "float32", "distribution": "normal", "note": None, "devices": [], "available": 2},
                **{"points": [], "messages": [], "suspect": 0},
                **COUNTS,
                **TIMES,
            ),
            job_results.ScalingResult,
        ),
        (
            of_the_service(ProfileResult, arch="sm_90", note=None, points=[], **COUNTS, **TIMES),
            job_results.ProfileResult,
        ),
        (of_the_service(AccuracyResult, points=[], exceeded=0, **COUNTS, **TIMES), job_results.AccuracyResult),
        (
            of_the_service(
                ThreeNumbersResult,
                **{"dtype": "float32", "a": 1e8, "b": 1.0, "c": -1e8, "exact": 1.0, "exact_hex": "0x1.0p+0"},
                **{"orders": [], "distinct_values": 2},
                **TIMES,
            ),
            job_results.ThreeNumbersResult,
        ),
        ({"some": "kind of a newer service"}, job_results.OtherResult),
    ],
)
def test_a_result_is_read_as_what_it_is(served: dict[str, Any], read: type[Answer]) -> None:
    assert type(ADAPTER.validate_python(served)) is read


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"value": 0.1}, "0.1"),
        ({"value": None, "hex": None}, "null"),
        ({"value": 0.1, "decimal": "0.1000"}, "0.1000"),
        ({"value": 1, "time": {"iso": "1970-01-02", "unit": "D", "timezone": None, "exact": None}}, "1970-01-02"),
        ({"value": {"re": 1.0, "im": -2.0}, "hex": None}, "(1-2j)"),
    ],
)
def test_a_value_is_said_as_what_it_stands_for(fields: dict[str, Any], words: str) -> None:
    result = job_results.ReduceResult.model_validate({**EXAMPLE, **fields})
    assert result.words == words
    assert words in repr(result)


def test_the_time_of_a_first_run_says_what_was_compiled_before_it() -> None:
    timings = job_results.ReduceResult.model_validate(EXAMPLE).timings
    again, first = (timings.model_copy(update={"kernel_ms": 0.5, "prepare_ms": ms}) for ms in (0.0, 120.4))
    assert (again.words, first.words) == ("0.500 ms", "0.500 ms after 120 ms for a first run's kernels")
