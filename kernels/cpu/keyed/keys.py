"""Numbers of keys. Equal keys of one column, or of several, get the same number. Numbers count from 1 on. Keys come as
arrays of pyarrow. Each thread has a table of numbers of its own; where two tables are merged, the keys of one are
numbered again in the other.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.keyed.integer_keys import Numbers, integer_keys
from warpfold.kernels.machine.extras import required


class _Column(Protocol):
    """The numbers of the keys of one column. Without `keep_nulls` the number of a null is 0."""

    @property
    def count(self) -> int: ...

    def number(self, keys: Any) -> Numbers: ...

    def keys(self, numbers: Numbers) -> Any:
        """The keys that have these numbers, an array of pyarrow."""
        ...


class _Fixed:
    """A column of integers, truth values, dates, timestamps or floats: of values that are the patterns of integers. NaN
    is a null, and −0 is 0."""

    def __init__(self, kind: Any, *, keep_nulls: bool, any_order: bool, compiled: bool) -> None:
        pyarrow = required("pyarrow", "tables")
        self._kind = kind
        self._is_float = pyarrow.types.is_floating(kind)
        self._stored = _stored_as(kind)
        self._signed = np.dtype(f"int{self._stored.bit_width}")
        self._numbers = integer_keys(any_order=any_order, compiled=compiled)
        self._keep_nulls, self._any_order = keep_nulls, any_order
        self._null = 0

    @property
    def count(self) -> int:
        return self._numbers.count

    def number(self, keys: Any) -> Numbers:
        if self._is_float:
            floats = keys.to_numpy(zero_copy_only=False) + keys.type.to_pandas_dtype()(0)  # which makes −0 a 0
            keys = required("pyarrow", "tables").array(floats, keys.type, mask=np.isnan(floats))
        elif self._stored is not self._kind:
            keys = keys.cast(self._stored)
        if not keys.null_count:
            return self._numbers.number(self._patterns(keys))
        missing = keys.is_null().to_numpy(zero_copy_only=False)
        ids = np.zeros(len(keys), np.int32)
        if self._keep_nulls and not self._any_order and not self._null:  # the null has its turn, too
            self._numbers.number(self._patterns(keys.slice(0, int(missing.argmax()))))
            self._null = self._numbers.reserve()
        ids[~missing] = self._numbers.number(self._patterns(keys.drop_null()))
        if self._keep_nulls:
            self._null = self._null or self._numbers.reserve()
            ids[missing] = self._null
        return ids

    def _patterns(self, keys: Any) -> NDArray[Any]:
        patterns: NDArray[Any] = keys.to_numpy(zero_copy_only=False).view(self._signed)
        return patterns

    def keys(self, numbers: Numbers) -> Any:
        pyarrow = required("pyarrow", "tables")
        patterns = self._numbers.known()[numbers - 1].astype(self._signed)
        elements = patterns.view(self._stored.to_pandas_dtype())
        missing = numbers == self._null if self._null else None
        return pyarrow.array(elements, self._stored, mask=missing).cast(self._kind)


def _stored_as(kind: Any) -> Any:
    """The type of the integers or floats that keys of a type are."""
    pyarrow = required("pyarrow", "tables")
    if pyarrow.types.is_boolean(kind):
        return pyarrow.uint8()
    if pyarrow.types.is_temporal(kind):
        return pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()
    return kind


class _Words:
    """A column of strings, or of a dictionary. Its keys are numbered in the order of the dictionaries. An entry of a
    dictionary that no row uses gets no number."""

    def __init__(self, kind: Any, *, keep_nulls: bool, any_order: bool, compiled: bool) -> None:
        pyarrow = required("pyarrow", "tables")
        words = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        # pyarrow neither sorts views of strings nor encodes them.
        self._kind = pyarrow.large_string() if pyarrow.types.is_string_view(words) else words
        self._keep_nulls = keep_nulls
        self._places: dict[Any, int] = {}
        self._words: list[Any] = []
        self._numbers = integer_keys(any_order=any_order, compiled=compiled)
        self._last: tuple[Any, Numbers] | None = None

    @property
    def count(self) -> int:
        return self._numbers.count

    def number(self, keys: Any) -> Numbers:
        pyarrow = required("pyarrow", "tables")
        if pyarrow.types.is_string_view(keys.type):
            keys = keys.cast(pyarrow.large_string())
        if not pyarrow.types.is_dictionary(keys.type):
            keys = keys.dictionary_encode()
        places = self._placed(keys.dictionary)
        indices = keys.indices
        null = self._place(None) if self._keep_nulls else -1
        if indices.null_count:
            at = indices.cast(pyarrow.int64()).fill_null(places.size).to_numpy(zero_copy_only=False)
            numbers = np.append(places, np.int32(null))[at]
        else:
            numbers = places[indices.to_numpy(zero_copy_only=False)]
        if self._keep_nulls or not (numbers < 0).any():
            return self._numbers.number(numbers)
        ids = np.zeros(numbers.size, np.int32)
        present = numbers >= 0
        ids[present] = self._numbers.number(numbers[present])
        return ids

    def _placed(self, dictionary: Any) -> Numbers:
        """Where each of the keys in a dictionary stands in `_words`; −1 for a null that is dropped."""
        if self._last is not None and self._last[0].equals(dictionary):
            return self._last[1]
        words = dictionary.to_pylist()
        places = np.array(
            [self._place(word) if word is not None or self._keep_nulls else -1 for word in words], np.int32
        )
        self._last = dictionary, places
        return places

    def _place(self, word: Any) -> int:
        place = self._places.setdefault(word, len(self._words))
        if place == len(self._words):
            self._words.append(word)
        return place

    def keys(self, numbers: Numbers) -> Any:
        pyarrow = required("pyarrow", "tables")
        places = self._numbers.known()
        return pyarrow.array([self._words[places[number - 1]] for number in numbers.tolist()], self._kind)


class KeyTable:
    """The numbers of keys of columns of these types of pyarrow, which `frames.check_key` has accepted. Keys are
    numbered in the order in which they appear, or with `any_order` in a cheaper one. A table that is not `compiled` is
    slower, and needs no compiler."""

    def __init__(
        self, kinds: Sequence[Any], *, keep_nulls: bool, any_order: bool = False, compiled: bool = True
    ) -> None:
        pyarrow = required("pyarrow", "tables")
        self._columns: list[_Column] = [
            (_Fixed if pyarrow.types.is_primitive(kind) else _Words)(
                kind, keep_nulls=keep_nulls, any_order=any_order, compiled=compiled
            )
            for kind in kinds
        ]
        self._pairs = [integer_keys(any_order=any_order, compiled=compiled) for _ in kinds[1:]]

    @property
    def count(self) -> int:
        """How many keys have numbers."""
        return self._pairs[-1].count if self._pairs else self._columns[0].count

    def number(self, keys: Sequence[Any]) -> Numbers:
        """The number of the keys of each row, shape (rows,); 0 where a null among them is dropped."""
        ids, *others = (column.number(array) for column, array in zip(self._columns, keys, strict=True))
        for numbers, right in zip(self._pairs, others, strict=True):
            both = (ids.astype(np.int64) << 32) | right
            dropped = (ids == 0) | (right == 0)
            if dropped.any():
                ids = np.zeros(ids.size, np.int32)
                ids[~dropped] = numbers.number(both[~dropped])
            else:
                ids = numbers.number(both)
        return ids

    def keys(self) -> list[Any]:
        """The keys of numbers 1 … count, an array of pyarrow for each column."""
        numbers = np.arange(1, self.count + 1, dtype=np.int32)
        columns = []
        for column, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            both = pairs.known()[numbers - 1]
            columns.append(column.keys((both & 0xFFFFFFFF).astype(np.int32)))
            numbers = (both >> 32).astype(np.int32)
        columns.append(self._columns[0].keys(numbers))
        return columns[::-1]


def sorted_order(keys: Sequence[Any]) -> NDArray[np.int64]:
    """The order of distinct keys, an array of pyarrow for each column, by the first column, then the next; nulls come
    last."""
    pyarrow, compute = required("pyarrow", "tables"), required("pyarrow.compute", "tables")
    if len(keys) == 1 and pyarrow.types.is_integer(keys[0].type) and not keys[0].null_count:
        return np.argsort(keys[0].to_numpy())  # no two keys are equal, so that the sort need not be stable
    names = [str(number) for number in range(len(keys))]
    sorted_by = [(name, "ascending") for name in names]
    order = compute.sort_indices(pyarrow.Table.from_arrays(list(keys), names), sorted_by)
    indices: NDArray[np.int64] = order.to_numpy().astype(np.int64)
    return indices
