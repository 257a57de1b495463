"""Stored elements become values, nulls, and integers with a meaning, piece by piece as they are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, dtype_of
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.sections import NullRefused, in_turn
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource, Tally, likely_count

_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class Lowering:
    """What the elements stored at `path` stand for.

    They are read as integers of the dtype `read_as`, where that is another one of their size, such as an unsigned one.
    Those that equal one of the `fills`, or lie outside of `least` to `most`, are nulls; all of these are numbers of the
    dtype. NaN is none of them, because a reduction has a policy of its own for NaN. The others stand for what `meaning`
    says. With `truths`, pieces are read as truth values, which say whether each element is a null.
    """

    path: str
    policy: NullPolicy
    fills: tuple[Any, ...] = ()
    least: Any = None
    most: Any = None
    read_as: "np.dtype[Any] | None" = None
    meaning: Meaning | None = None
    truths: bool = False

    @property
    def has_nulls(self) -> bool:
        """Whether an element may be a null."""
        return bool(self.fills) or self.least is not None or self.most is not None

    @property
    def plain(self) -> bool:
        """Whether elements are values as they are stored."""
        return not self.has_nulls and self.read_as is None and self.meaning is None

    @property
    def leaves_out(self) -> bool:
        """Whether elements may be left out, so that only reading tells how many elements enter."""
        return self.has_nulls and self.policy is NullPolicy.OMIT

    def taken(self, piece: NDArray[Any], start: int, tally: Tally) -> NDArray[Any]:
        """The elements of a piece that are values; or, where nulls keep their places, all elements with zeros for the
        nulls. The piece begins at the index `start`, and `tally` counts the nulls. Raises NullRefused where a null is
        refused."""
        piece = piece if self.read_as is None else piece.view(self.read_as)
        if not self.has_nulls:
            return piece
        nulls = self.nulls_in(piece)
        if self.truths:
            return nulls
        count = int(np.count_nonzero(nulls))
        if count and self.policy is NullPolicy.RAISE:
            raise NullRefused(self.path, start + int(np.argmax(nulls)))
        tally.add(nulls=count)
        if not count:
            return piece
        return piece[~nulls] if self.policy is NullPolicy.OMIT else np.where(nulls, piece.dtype.type(0), piece)

    def nulls_in(self, piece: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each element of a piece, which is read as it is to be, is a null."""
        nulls = np.zeros(piece.shape, np.bool_)
        for fill in self.fills:
            nulls |= piece == fill
        if self.least is not None:
            nulls |= piece < self.least
        if self.most is not None:
            nulls |= piece > self.most
        return nulls

    def with_nulls(self, opened: "Callable[[Lowering], SequentialSource]") -> Callable[[], SequentialSource] | None:
        """The source of truth values that say whether each element is a null, which `opened` opens; None where nulls
        are not kept."""
        kept = self.has_nulls and self.policy is NullPolicy.PROPAGATE and not self.truths
        return partial(opened, replace(self, truths=True, meaning=None)) if kept else None

    def dtype(self, stored: "np.dtype[Any]") -> DType:
        """The dtype of the elements that `taken` returns for elements of this stored dtype. Raises InvalidInput."""
        return DTYPES["bool"] if self.truths else dtype_of(stored if self.read_as is None else self.read_as)


def lowered(stored: Elements, lowering: Lowering, shape: tuple[int, ...] | None) -> SequentialSource:
    """What the elements of a source stand for; they are an array of `shape`, if that is known. Several threads read
    them by position where the source allows that; else they are read in order."""
    tally, known, source = Tally(), not lowering.leaves_out, stored

    def read(start: int, stop: int) -> Iterator[NDArray[Any]]:
        assert not isinstance(source, SequentialSource)
        yield lowering.taken(source.read(start, stop), start, tally)

    def sections() -> Iterator[Section]:
        for start in range(0, source.count or 0, _PART):
            stop = min(start + _PART, source.count or 0)
            place = (start, stop - start) if known else (None, None)
            yield Section(partial(read, start, stop), source.dtype.itemsize * (stop - start), *place)

    def pieces() -> Iterator[NDArray[Any]]:
        if not isinstance(source, SequentialSource):
            yield from in_turn(sections(), tally)
            return
        start = 0
        for piece in source.make():
            yield lowering.taken(piece, start, tally)
            start += piece.size

    return SequentialSource(
        lowering.dtype(source.dtype.numpy),
        pieces,
        stored.count if known else None,
        likely_count(stored),
        tally,
        shape if known else None,
        None if isinstance(stored, SequentialSource) else sections,
        lowering.meaning,
        lowering.with_nulls(lambda truths: lowered(stored, truths, shape)),
    )
