from typing import Any

from warpfold.contract.kinds.reduce import ReduceResult

EXAMPLE: dict[str, Any] = ReduceResult.model_json_schema()["examples"][0]


def test_the_documented_example_is_a_result() -> None:
    assert ReduceResult.model_validate(EXAMPLE).model_dump(mode="json") == EXAMPLE
