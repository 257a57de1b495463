"""What a reader of JSON would lose is refused, or kept as text; everything else is as every reader has it."""

import json
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.contract.json_text import read_json
from warpfold.kernels.errors import InvalidInput

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-9, 9).map(float),
    st.text(alphabet='ab:"\\é', max_size=4),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab:c", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(value=_VALUES, spaces=st.sampled_from([(",", ":"), (" , ", " : ")]))
@settings(max_examples=300, deadline=None)
def test_what_a_program_writes_is_read_as_it_was(value: Any, spaces: tuple[str, str]) -> None:
    read = read_json(json.dumps(value, separators=spaces).encode())
    assert repr(read) == repr(value)


@given(value=_VALUES, name=st.sampled_from(["a", "x:y", "é", '"']))
@settings(max_examples=100, deadline=None)
def test_a_name_that_is_written_twice_is_named_with_its_place(value: Any, name: str) -> None:
    first, second = (json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False))
    inner = f'{{{first}: {json.dumps(value)}, "b": 1, {second}: {json.dumps(value)}}}'
    for text, place in ((inner, name), (f'{{"s": [1, {{"t": {inner}}}]}}', f"s.1.t.{name}")):
        with pytest.raises(InvalidInput, match="written twice") as refused:
            read_json(text.encode())
        assert refused.value.field == place


def test_what_is_no_json_is_no_field_at_fault() -> None:
    for text in (b"{", b"[NaN]", b"[1e400, Infinity]", b'{"a": 1, "a"', b"\xff", b"[" * 10_000):
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - of any message
            read_json(text)
        assert not isinstance(refused.value, InvalidInput)


_DIGITS = st.text("0123456789", max_size=30)


@given(
    whole=st.one_of(st.integers(0, 2**60), st.just(0)).map(str),
    fraction=_DIGITS | st.integers(0, 80).map(lambda zeros: "0" * zeros + "1") | st.integers(1, 80).map("9".__mul__),
    exponent=st.just("") | st.integers(-420, 280).map("e{}".format) | st.integers(-420, 280).map("E{:+}".format),
    others=st.sampled_from(["", "0.5, ", "1.0, ", '{"a": [1]}, ']),
)
@settings(max_examples=500, deadline=None)
def test_no_number_becomes_an_integer_that_it_is_not(whole: str, fraction: str, exponent: str, others: str) -> None:
    written = f"{whole}.{fraction}{exponent}" if fraction else f"{whole}{exponent or '.0'}"
    read = read_json(f'{{"values": [{others}-{written}]}}'.encode())["values"][-1]
    exact, nearest = -Fraction(Decimal(written)), -float(written)
    assert float(read) == nearest
    if nearest.is_integer() and abs(nearest) <= 2**53 and exact != nearest:
        assert isinstance(read, str)
        assert len(read) <= 64
        assert Fraction(Decimal(read)) != nearest
    else:
        assert type(read) is float


def test_a_number_too_small_for_a_float_costs_no_more_than_24_plain_ones() -> None:
    def read_s(number: str) -> float:
        body = f"[0.5, {f'{number}, ' * 20_000}1.0]".encode()
        began = time.process_time()
        read_json(body)
        return time.process_time() - began

    assert min(read_s("1e-400") for _ in range(5)) < 24 * min(read_s("0.25") for _ in range(5))


def test_a_field_for_one_number_gets_the_nearest_float() -> None:
    assert read_json(b'{"mean": 0.99999999999999999999, "values": [1e-400]}') == {"mean": 1.0, "values": ["1e-400"]}
