import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.results.reduce import MAX_DIGITS, ReduceResult, as_json, check_length, hex_of
from kernels.errors import InvalidInput
from kernels.ops import Value

EXAMPLE: dict[str, Any] = ReduceResult.model_json_schema()["examples"][0]


def result_with(value: Value) -> ReduceResult:
    return ReduceResult.model_validate({**EXAMPLE, "value": value, "hex": hex_of(value)})


def test_the_documented_example_is_a_result() -> None:
    assert as_json(ReduceResult.model_validate(EXAMPLE)) == EXAMPLE


@pytest.mark.parametrize("value", [1.0, -0.0, 5e-324, 1.7976931348623157e308, 2**200, -(2**70), 7, True, False])
def test_a_finite_value_returns_from_json_with_its_type_and_bits(value: Value) -> None:
    read = ReduceResult.model_validate(json.loads(json.dumps(as_json(result_with(value)), allow_nan=False)))
    assert type(read.value) is type(value)
    assert repr(read.value) == repr(value)
    assert read.hex == hex_of(value)


@pytest.mark.parametrize("name", ["nan", "inf", "-inf"])
def test_a_non_finite_value_is_its_name_in_json_and_a_float_in_python(name: str) -> None:
    stored = as_json(result_with(float(name)))
    assert stored["value"] == name
    assert stored["hex"] == name
    read = ReduceResult.model_validate(stored).value
    assert isinstance(read, float)
    assert not math.isfinite(read)


def test_hex_is_what_python_prints_and_only_floats_have_it() -> None:
    assert hex_of(1.0) == "0x1.0000000000000p+0"
    assert hex_of(-0.0) == "-0x0.0p+0"
    assert hex_of(3) is None
    assert hex_of(True) is None


def test_a_word_is_no_value() -> None:
    with pytest.raises(ValidationError):
        ReduceResult.model_validate({**EXAMPLE, "value": "infinity"})


def test_an_integer_too_long_for_json_readers_is_refused_with_a_remedy() -> None:
    check_length(10**MAX_DIGITS - 1)
    check_length(-(10**MAX_DIGITS) + 1)
    check_length(1e308)
    with pytest.raises(InvalidInput, match="float dtype"):
        check_length(10**MAX_DIGITS)
