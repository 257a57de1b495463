"""Numbers of integer keys: equal keys have equal numbers, whether they are numbers by place, by table or by hash."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.keyed.integer_keys import IntegerKeys

INTEGERS = ["int8", "int16", "int32", "int64"]


def numbered(parts: Sequence[NDArray[Any]], *, any_order: bool) -> tuple[IntegerKeys, list[int]]:
    """The numbers of the keys of all parts, after checking that they are numbers of these keys."""
    table, ids = IntegerKeys(any_order=any_order), []
    for part in parts:
        part.flags.writeable = False
        numbers = table.number(part)
        assert table.known()[numbers - 1].astype(part.dtype).tolist() == part.tolist()
        ids += numbers.tolist()
    keys = [key for part in parts for key in part.tolist()]
    assert table.known().tolist() == [dict(zip(ids, keys, strict=True))[number + 1] for number in range(table.count)]
    assert len(set(ids)) == len(set(keys)) == table.count
    return table, ids


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("at", ["lowest", "middle", "highest"])
def test_keys_beyond_a_range_without_gaps_get_numbers_of_their_own(dtype: str, at: str) -> None:
    chance, bounds = np.random.default_rng(5), np.iinfo(dtype)
    least = {"lowest": bounds.min, "middle": -20, "highest": bounds.max - 40}[at]
    inside = np.arange(least, least + 41, dtype=dtype)
    edges = np.array([bounds.min, bounds.max, -1, 0, 1], dtype)
    mixed = np.concatenate([np.repeat(inside, 300), chance.choice(edges, 5000), chance.choice(inside, 5000)])
    for parts in ((chance.permutation(inside), mixed, inside), (inside, edges, mixed[::-1].copy(), edges)):
        _, ids = numbered([part.copy() for part in parts], any_order=True)
        assert ids[: inside.size] == (parts[0].astype(np.int64) - least + 1).tolist()


def test_all_integers_of_8_bits_may_be_one_range() -> None:
    keys = np.random.default_rng(1).permutation(np.arange(-128, 128)).astype(np.int8)
    _, ids = numbered([keys, keys[::-1].copy()], any_order=True)
    assert ids[:256] == (keys.astype(int) + 129).tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_first_keys_with_a_gap_are_numbered_in_the_order_in_which_they_appear(dtype: str) -> None:
    parts = [np.array(keys, dtype) for keys in ([7, 3, 7, 4], [], [5, 6, 3], [-100, 100])]
    _, ids = numbered(parts, any_order=True)
    assert ids == [1, 2, 1, 3, 4, 5, 2, 6, 7]


def test_keys_are_numbered_in_order_unless_any_order_will_do() -> None:
    parts = [np.array([2, 0, 1, 2]), np.array([3, 1])]
    assert numbered([part.copy() for part in parts], any_order=False)[1] == [1, 2, 3, 1, 4, 3]
    assert numbered(parts, any_order=True)[1] == [3, 1, 2, 3, 4, 2]


def test_a_number_without_a_key_stays_reserved() -> None:
    table = IntegerKeys(any_order=True)
    first = table.number(np.array([1, 0], np.int32))
    reserved = table.reserve()
    later = table.number(np.array([0, 1, 5, -(1 << 30), 1], np.int32))
    assert first.tolist() == [2, 1]
    assert reserved == 3
    assert later.tolist() == [1, 2, 4, 5, 2]
