from typing import Any

import pytest

from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.tasks import task_spec

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
