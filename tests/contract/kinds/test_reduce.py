from typing import Any

import pytest
from pydantic import ValidationError

from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.tasks import task_spec
from warpfold.kernels.errors import InvalidInput

EXAMPLE: dict[str, Any] = ReduceResult.model_json_schema()["examples"][0]


def test_the_documented_example_is_a_result() -> None:
    assert ReduceResult.model_validate(EXAMPLE).model_dump(mode="json") == EXAMPLE


@pytest.mark.parametrize(
    ("source", "small"),
    [
        ({"type": "values", "values": [1.0, 2.0]}, True),
        ({"type": "generate", "distribution": "normal", "n": 10_000, "seed": 1}, True),
        ({"type": "generate", "distribution": "normal", "n": 10_001, "seed": 1}, False),
        ({"type": "path", "path": "/data/a.npy"}, False),
        ({"type": "dataset", "id": "0" * 64}, False),
    ],
)
def test_a_reduction_of_few_elements_that_are_at_hand_is_small(source: dict[str, object], small: bool) -> None:
    spec = {"kind": "reduce", "op": "sum", "source": source}
    assert task_spec.validate_python(spec).small() is small


def _spec(**fields: Any) -> dict[str, Any]:
    source = {"type": "values", "values": [1.0, 2.0, 4.0]}
    return {"kind": "reduce", "op": "mean", "source": source, "weights": source, **fields}


def test_weights_are_a_source_and_named_in_words() -> None:
    spec = task_spec.validate_python(_spec(weighting="reliability", op="var", ddof=1))
    assert [field for field, _ in spec.sources()] == ["source", "weights"]
    assert "reliability weights 3 given values" in spec.description()
    assert spec.needs() == "any"
    assert task_spec.validate_python(_spec(segments={"length": 2})).needs() == "cpu"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"weights": {"type": "values", "values": [1.0]}}, "weights"),
        ({"op": "max"}, "weights"),
        ({"weights": None, "weighting": "reliability"}, "weighting"),
        ({"strategy": "numpy"}, "strategy"),
        ({"backend": "dask"}, "weights"),
        ({"segments": {"length": 2}, "states": True}, "states"),
        ({"segments": {"length": 2}, "backend": "cuda"}, "backend"),
        ({"op": "skew", "weights": None, "ddof": 2}, "ddof"),
        ({"op": "corr", "weights": None}, "other"),
    ],
)
def test_what_weights_and_moments_do_not_take_is_named(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        task_spec.validate_python(_spec(**fields))
    (error,) = caught.value.errors()
    cause = error["ctx"]["error"]
    assert isinstance(cause, InvalidInput)
    assert cause.field == field
