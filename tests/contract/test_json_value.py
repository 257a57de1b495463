import json
import math

import pytest
from pydantic import TypeAdapter, ValidationError

from warpfold.contract.json_value import MAX_DIGITS, JsonValue, check_length, hex_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Value

ADAPTER: TypeAdapter[Value] = TypeAdapter(JsonValue)


@pytest.mark.parametrize("value", [1.0, -0.0, 5e-324, 1.7976931348623157e308, 2**200, -(2**70), 7, True, False])
def test_a_finite_value_returns_from_json_with_its_type_and_bits(value: Value) -> None:
    stored = json.dumps(ADAPTER.dump_python(value, mode="json"), allow_nan=False)
    read = ADAPTER.validate_python(json.loads(stored))
    assert type(read) is type(value)
    assert repr(read) == repr(value)


@pytest.mark.parametrize("name", ["nan", "inf", "-inf"])
def test_a_non_finite_value_is_its_name_in_json_and_a_float_in_python(name: str) -> None:
    assert ADAPTER.dump_python(float(name), mode="json") == name == hex_of(float(name))
    read = ADAPTER.validate_python(name)
    assert isinstance(read, float)
    assert not math.isfinite(read)


def test_hex_is_what_python_prints_and_only_floats_have_it() -> None:
    assert hex_of(1.0) == "0x1.0000000000000p+0"
    assert hex_of(-0.0) == "-0x0.0p+0"
    assert hex_of(3) is None
    assert hex_of(True) is None


def test_a_word_is_no_value() -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python("infinity")


def test_an_integer_too_long_for_json_readers_is_refused_with_a_remedy() -> None:
    check_length(10**MAX_DIGITS - 1)
    check_length(-(10**MAX_DIGITS) + 1)
    check_length(1e308)
    with pytest.raises(InvalidInput, match="float dtype"):
        check_length(10**MAX_DIGITS)
