"""Numbers of keys that are integers. Where the first keys are all integers of a range, the number of a key is its place
in that range. Numbers of other keys are looked up, in a table while the range of all keys is narrow, and by hash
afterwards."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable

Numbers = NDArray[np.int32]

_MOST_TABLE = 1 << 24
"""The widest range of integers that has a table: 64 MiB of numbers."""

_TABLE_ROWS = 64
"""A table is no wider than so many times the keys that have come, or than _SMALL_TABLE."""

_SMALL_TABLE = 1 << 16


class NumberedKeys(Protocol):
    """The numbers of signed integers. They count from 1 on, in the order in which keys appear, or with `any_order` in
    an order that makes them cheaper to find."""

    count: int

    def known(self) -> NDArray[np.int64]:
        """The keys by number, from 1 on."""
        ...

    def reserve(self) -> int:
        """A number that no key has."""
        ...

    def number(self, keys: NDArray[Any]) -> Numbers:
        """The number of each of `keys`, signed integers, shape (n,)."""
        ...


def integer_keys(*, any_order: bool, compiled: bool = True) -> NumberedKeys:
    """Numbers of no keys so far. Those that are not `compiled` are found more slowly, and need no compiler."""
    return IntegerKeys(any_order=any_order) if compiled else InterpretedKeys()


class InterpretedKeys:
    """Numbers in the order in which keys appear, by NumPy and a dictionary."""

    def __init__(self) -> None:
        self.count = 0
        self._numbers: dict[int, int] = {}
        self._known: list[int] = []

    def known(self) -> NDArray[np.int64]:
        return np.array(self._known, np.int64)

    def reserve(self) -> int:
        self.count += 1
        self._known.append(0)
        return self.count

    def number(self, keys: NDArray[Any]) -> Numbers:
        distinct, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(distinct.size, np.int32)
        order = np.argsort(firsts)
        for at, key in zip(order.tolist(), distinct[order].tolist(), strict=True):
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self.reserve()
                self._known[-1] = key
            numbers[at] = number
        return numbers[places.reshape(-1)]


class IntegerKeys:
    """Numbers by compiled loops, which read keys as int32 or int64."""

    def __init__(self, *, any_order: bool) -> None:
        from warpfold.kernels.cpu.keyed import loops

        self._any_order = any_order
        self._range: tuple[Any, Any] | None = None  # its least key and its width less 1, as patterns
        self._loops = loops
        self.count = 0
        self._known = np.zeros(1 << 8, np.int64)
        self._rows = 0
        self._reserved = 0
        self._least = 0
        self._table: Numbers | None = np.zeros(0, np.int32)
        self._slots = np.zeros(0, np.int32)
        self._shift = np.uint64(0)

    def known(self) -> NDArray[np.int64]:
        return self._known[1 : self.count + 1]

    def reserve(self) -> int:
        self._hold(self.count + 1)
        self.count += 1
        self._reserved = self.count
        return self.count

    def _hold(self, count: int) -> None:
        if self._known.size <= count:
            self._known = np.concatenate([self._known, np.zeros(max(count, self._known.size), np.int64)])

    def number(self, keys: NDArray[Any]) -> Numbers:
        word = np.dtype(np.int64 if keys.itemsize == 8 else np.int32)
        keys = readable(keys.astype(word, copy=False), word)
        ids = np.empty(keys.size, np.int32)
        self._rows += keys.size
        done, first = self._number_by_range(keys, ids), self.count == 0
        if done < keys.size:
            self._look_up(keys[done:], ids[done:])
        if first and self._any_order and self._table is not None and 0 < self.count == self._table.size:
            self._number_again(keys, ids)
        return ids

    def _number_by_range(self, keys: NDArray[Any], ids: Numbers) -> int:
        """Number keys up to one outside of the range; returns how many were numbered."""
        if self._range is None:
            return 0
        least, above = self._range
        done: int = self._loops.number_by_range(keys.view(least.dtype), least, above, ids)
        return done

    def _number_again(self, keys: NDArray[Any], ids: Numbers) -> None:
        """Number the first keys by place in the range of the table, which has no gap."""
        assert self._table is not None, "asked only of a table"
        patterns = np.array([self._least, self.count - 1]).astype(f"uint{8 * keys.itemsize}")
        self._range = patterns[0], patterns[1]
        self._table[:] = np.arange(1, self.count + 1)
        self._known[1 : self.count + 1] = self._least + np.arange(self.count)
        self._number_by_range(keys, ids)

    def _look_up(self, keys: NDArray[Any], ids: Numbers) -> None:
        """Number keys by the table while it can hold them, and by hash afterwards."""
        if self._table is not None and not self._covers(int(keys.min()), int(keys.max())):
            self._table = None
        most = self.count + keys.size
        self._hold(most if self._table is None else min(most, self._table.size + 1))
        if self._table is not None:
            self.count = self._loops.number_by_table(keys, self._least, self._table, ids, self._known, self.count)
        else:
            self._grow_slots(most)
            self.count = self._loops.number_by_hash(keys, self._shift, self._slots, ids, self._known, self.count)

    def _covers(self, least: int, most: int) -> bool:
        """Make the table grow for keys from `least` to `most`, and return whether it has a place for them."""
        assert self._table is not None, "asked only of a table"
        if self._least <= least and most < self._least + self._table.size:
            return True
        if self.count:
            least, most = min(least, self._least), max(most, self._least + self._table.size - 1)
        width = most - least + 1
        if width > min(_MOST_TABLE, max(_SMALL_TABLE, _TABLE_ROWS * self._rows)):
            return False
        if self.count:  # with room to spare, so that the table does not grow with every part
            room = min(width, _MOST_TABLE - width)
            least, width = (least - room, width + room) if least < self._least else (least, width + room)
            least = max(least, -(1 << 63))
        table = np.zeros(width, np.int32)
        self._least, self._table = least, table
        numbers = np.arange(1, self.count + 1, dtype=np.int32)
        numbers = numbers[numbers != self._reserved]
        table[self._known[numbers] - least] = numbers
        return True

    def _grow_slots(self, count: int) -> None:
        if self._slots.size >= 2 * count:
            return
        bits = (4 * count - 1).bit_length()
        self._slots = np.zeros(1 << bits, np.int32)
        self._shift = np.uint64(64 - bits)
        self._loops.rehash(self._known, self.count, self._reserved, self._shift, self._slots)
