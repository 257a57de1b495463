"""Compiled loops from element to group: numbers of keys, and sums of integers by group.

Groups are numbered from 1 in the order in which they appear; 0 is for elements that are dropped.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.jit import jit

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_DIGIT = np.int64(0xFFFFFFFF)
_BLOCK = 1 << 12
_MOST_ADDED = (1 << 28) - 1
"""Elements that a group takes before it carries."""


@jit
def number_by_table(keys: Any, least: Any, table: Any, ids: Any, known: Any, count: Any) -> Any:
    """ids[i] = the number of keys[i], which table[keys[i] − least] (int32) has or, where that is 0, gets; known[number]
    is the key. Returns the count of all numbers."""
    for i in range(keys.size):
        at = _U(np.int64(keys[i]) - least)
        number = table[at]
        if number == 0:
            count += 1
            number = count
            table[at] = number
            known[number] = keys[i]
        ids[i] = number
    return count


@jit
def number_by_range(keys: Any, least: Any, above: Any, ids: Any) -> Any:
    """ids[i] = keys[i] − least + 1, of keys that are unsigned patterns, up to the first block with a key that is more
    than `above` above `least`, modulo the width of a key. Returns where that block begins."""
    word = keys.dtype.type
    for start in range(0, keys.size, _BLOCK):
        some, numbers = keys[start : start + _BLOCK], ids[start : start + _BLOCK]
        most = word(0)
        for i in range(some.size):
            at = word(some[i] - least)
            most = at if at > most else most
            numbers[i] = np.int32(np.int32(at) + np.int32(1))
        if most > above:
            return start
    return keys.size


@jit
def _slot(key: Any, shift: Any) -> Any:
    return (_U(key) * _MULTIPLIER) >> shift


@jit
def number_by_hash(keys: Any, shift: Any, slots: Any, ids: Any, known: Any, count: Any) -> Any:
    """Do what `number_by_table` does, where a key's number is in the first of `slots` from its hash on (2**(64 − shift)
    of them, of which at most half are taken) that has the key or is 0."""
    mask = _U(slots.size - 1)
    for i in range(keys.size):
        key = np.int64(keys[i])
        at = _slot(key, shift)
        number = slots[at]
        while number != 0 and known[_U(number)] != key:
            at = (at + _U(1)) & mask
            number = slots[at]
        if number == 0:
            count += 1
            number = count
            slots[at] = number
            known[number] = key
        ids[i] = number
    return count


@jit
def rehash(known: Any, count: Any, reserved: Any, shift: Any, slots: Any) -> None:
    """Put numbers 1 … count of the keys `known` into empty slots, except `reserved`, which has no key."""
    mask = _U(slots.size - 1)
    for number in range(1, count + 1):
        if number == reserved:
            continue
        at = _slot(known[number], shift)
        while slots[at] != 0:
            at = (at + _U(1)) & mask
        slots[at] = number


@jit
def pair(left: Any, right: Any, pairs: Any) -> Any:
    """pairs[i] = left[i] · 2**32 + right[i], 0 where either is 0; returns how many are 0."""
    zeros = 0
    for i in range(left.size):
        if left[i] == 0 or right[i] == 0:
            pairs[i] = 0
            zeros += 1
        else:
            pairs[i] = (np.int64(left[i]) << 32) | np.int64(right[i])
    return zeros


@jit
def first_rows(ids: Any, start: Any, firsts: Any) -> None:
    """firsts[g] = the row of the first element of each group that has −1 there; element i is row start + i."""
    for i in range(ids.size):
        if firsts[ids[i]] < 0:
            firsts[ids[i]] = start + i


@jit
def _carry(sums: Any, g: Any) -> None:
    for place in range(sums.shape[1] - 2):
        carry = sums[g, place] >> 32
        sums[g, place] &= _DIGIT
        sums[g, place + 1] += carry


@jit
def carry_all(sums: Any) -> None:
    """Bring all digits of all groups but the last one of each into 0 … 2**32 − 1."""
    for g in range(sums.shape[0]):
        _carry(sums, g)


@jit
def merge_sums(theirs: Any, ids: Any, mine: Any) -> None:
    """Add the digits and the count of group g of `theirs` to those of group ids[g] of `mine`."""
    for g in range(ids.size):
        to = np.int64(ids[g])
        _carry(theirs, g)
        _carry(mine, to)
        for place in range(mine.shape[1]):
            mine[to, place] += theirs[g, place]


@jit
def add_integers(elements: Any, ids: Any, unsigned: Any, magnitudes: Any, sums: Any) -> None:
    """Add integers to digits of 32 bits: sums has the shape (groups, 4), three digits and a count. With `unsigned` the
    elements are patterns of uint64."""
    for i in range(elements.size):
        g = _U(ids[i])
        x = np.int64(elements[i])
        if magnitudes and x < 0:
            x = -x  # |−2**63| has the pattern of 2**63
        sums[g, _U(0)] += x & _DIGIT
        sums[g, _U(1)] += np.int64(_U(x) >> _U(32)) if unsigned else x >> 32
        count = sums[g, _U(3)] + 1
        sums[g, _U(3)] = count
        if count & _MOST_ADDED == 0:
            _carry(sums, np.int64(g))


@jit
def add_integer_squares(elements: Any, ids: Any, unsigned: Any, sums: Any) -> None:
    """Do what `add_integers` does for squares: sums has the shape (groups, 6), five digits and a count."""
    digit, half = _U(0xFFFFFFFF), _U(32)
    for i in range(elements.size):
        g = _U(ids[i])
        x = np.int64(elements[i])
        a = _U(x if unsigned or x >= 0 else -x)
        low, high = a & digit, a >> half
        middle, square, top = low * high, low * low, high * high
        sums[g, _U(0)] += np.int64(square & digit)
        sums[g, _U(1)] += np.int64(square >> half) + 2 * np.int64(middle & digit)
        sums[g, _U(2)] += 2 * np.int64(middle >> half) + np.int64(top & digit)
        sums[g, _U(3)] += np.int64(top >> half)
        count = sums[g, _U(5)] + 1
        sums[g, _U(5)] = count
        if count & _MOST_ADDED == 0:
            _carry(sums, np.int64(g))
