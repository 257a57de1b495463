"""The canonical bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.exact import ExactState, Flags, StateError
from warpfold.kernels.exact.encoding import HEADER, LARGEST, MAX_DIGITS
from warpfold.kernels.ops import Terms

TERMS = st.sampled_from((Terms.VALUES, Terms.PRODUCTS))


@st.composite
def any_state(draw: st.DrawFn) -> ExactState:
    terms = draw(TERMS)
    count = draw(st.integers(0, 2**64 - 1) | st.integers(0, 3))
    bound = count * LARGEST[terms]
    shift = draw(st.integers(0, 4300))
    # Shifting a magnitude down and up again does not take it beyond the bound, as it would a negative number.
    units = draw(st.sampled_from((1, -1))) * (draw(st.integers(0, bound)) >> shift << draw(st.integers(0, shift)))
    flags = Flags(draw(st.integers(0, 7))) | Flags.NOT_NEGATIVE_ZERO if count else Flags.NONE
    return ExactState(terms, units, count, flags)


@given(any_state())
def test_a_state_comes_back_from_its_bytes(state: ExactState) -> None:
    assert ExactState.from_bytes(state.to_bytes()) == state


@given(any_state(), any_state())
def test_equal_states_and_only_they_have_equal_bytes(a: ExactState, b: ExactState) -> None:
    assert (a == b) == (a.to_bytes() == b.to_bytes())


@given(any_state())
def test_bytes_are_a_header_and_four_a_digit(state: ExactState) -> None:
    data = state.to_bytes()
    first, stored = struct.unpack_from("<HH", data, 16)
    assert len(data) == 24 + 4 * stored
    assert first + stored <= MAX_DIGITS[state.terms]


def test_the_sum_of_nothing_has_no_digits() -> None:
    assert ExactState.empty(Terms.VALUES).to_bytes() == b"WFXS\x01" + bytes(19)


def test_one_is_one_digit() -> None:
    state = ExactState.empty(Terms.VALUES).add(np.ones(1, dtype=np.float32))
    # 2**1074 = 2**18 · 2**(32·33)
    assert state.to_bytes() == b"WFXS" + struct.pack("<BBBBQHHII", 1, 0, 8, 0, 1, 33, 1, 0, 1 << 18)


def test_minus_one_unit_is_one_digit_of_ones() -> None:
    state = ExactState(Terms.VALUES, -1, 1, Flags.NOT_NEGATIVE_ZERO)
    assert state.to_bytes()[16:] == struct.pack("<HHII", 0, 1, 0, 0xFFFFFFFF)


def test_the_largest_sums_fit_the_most_digits() -> None:
    for terms, most in MAX_DIGITS.items():
        units = (2**64 - 1) * LARGEST[terms]
        for sum_ in (units, -units):
            data = ExactState(terms, sum_, 2**64 - 1, Flags.NOT_NEGATIVE_ZERO).to_bytes()
            first, stored = struct.unpack_from("<HH", data, 16)
            assert first + stored == most


def _changed(offset: int, value: bytes) -> bytes:
    data = bytearray(ExactState.empty(Terms.VALUES).add(np.array([1.5, -2.25])).to_bytes())
    data[offset : offset + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "magic"),
        (b"WFX", "magic"),
        (_changed(0, b"XFXS"), "magic"),
        (_changed(4, b"\x02"), "version"),
        (b"WFXS\x02", "version"),
        (b"WFXS\x01\x00", "length"),
        (_changed(0, b"")[:-1], "length"),
        (_changed(0, b"") + b"\x00", "length"),
        (_changed(5, b"\x04"), "terms"),
        (_changed(6, b"\x10"), "flags"),
        (_changed(6, b"\x00"), "flags"),
        (_changed(7, b"\x01"), "reserved"),
        (_changed(20, b"\x01"), "reserved"),
        (_changed(8, bytes(8)), "limbs"),
        (_changed(16, b"\xff\xff"), "limbs"),
        (_changed(24, bytes(4)), "limbs"),
    ],
)
def test_damaged_bytes_are_refused_with_the_part_that_is_wrong(data: bytes, part: str) -> None:
    with pytest.raises(StateError) as raised:
        ExactState.from_bytes(data)
    assert raised.value.part == part
    assert str(raised.value).startswith(part)


@pytest.mark.parametrize("digits", [(0, 1), (1, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0,)])
def test_digits_that_are_not_trimmed_are_refused(digits: tuple[int, ...]) -> None:
    header = HEADER.pack(b"WFXS", 1, 0, 8, 0, 10, 0, len(digits), 0)
    with pytest.raises(StateError, match="not trimmed"):
        ExactState.from_bytes(header + struct.pack(f"<{len(digits)}I", *digits))


@given(st.binary(max_size=120) | st.binary(max_size=100).map(lambda rest: b"WFXS\x01" + rest))
def test_bytes_are_a_state_or_refused_and_never_read_as_another(data: bytes) -> None:
    try:
        state = ExactState.from_bytes(data)
    except StateError:
        return
    assert state.to_bytes() == data
