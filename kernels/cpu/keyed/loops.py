"""Compiled loops that number keys.

Groups are numbered from 1 in the order in which they appear; 0 is for elements that are dropped.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.machine.jit import jit

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 1 << 12


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
