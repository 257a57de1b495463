"""Complex numbers: pairs of floats, whose real and imaginary parts are reduced by the kernels of floats.

A sum or a mean has those of both parts, each rounded once. A norm is that of all parts together: √ Σ (re² + im²). A
dot product is that of `numpy.dot`, which conjugates nothing; its two parts are made of four exact sums of products.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import Reduction
from warpfold.kernels.dtypes import COMPLEX, DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.query import Whole
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource, Tally, likely_count

_PART = 1 << 20
_OF_BOTH = ("sum", "mean")
_OF_ALL = ("sum_squares", "norm2", "any")

Context = Callable[[], AbstractContextManager[object]]


Run = Callable[[Whole], Reduction]
"""Answers a query whose elements are values."""


@dataclass(frozen=True, slots=True)
class ComplexNumbers(Meaning):
    """Each element is a complex number of the dtype `name`. `flat` has the real and the imaginary part of each in turn,
    which are read within `contexts`."""

    dtype: str
    flat: Elements = field(compare=False)
    contexts: tuple[Context, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.dtype

    @property
    def kind(self) -> str:
        return self.dtype

    def takes(self, op: Op) -> bool:
        return op.name in (*_OF_BOTH, *_OF_ALL, "dot")

    def check(self, op: Op) -> None:
        if not self.takes(op):
            why = (
                "complex numbers have no order"
                if op.extreme or op.selects
                else "both parts of an element enter it together"
            )
            if op.magnitudes:
                why = "|z| is a root, which is rounded for each element"
            raise InvalidInput(f"{op.name} takes no {self.dtype} so far: {why}; reduce the parts as floats", "op")

    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        raise AssertionError("complex numbers are no integers")

    def within(self, context: Context) -> Self:
        return replace(self, contexts=(*self.contexts, context))

    def part(self, which: int) -> SequentialSource:
        """The real parts, 0, or the imaginary ones, 1."""
        return self._read(which, 2)

    def parts(self) -> SequentialSource:
        """The real and the imaginary part of each element in turn."""
        return self._read(0, 1)

    def _read(self, first: int, step: int) -> SequentialSource:
        """Every `step`-th of the parts."""
        flat, tally = self.flat, Tally()

        def read(start: int, stop: int) -> Iterator[NDArray[Any]]:
            assert not isinstance(flat, SequentialSource)
            yield np.ascontiguousarray(flat.read(start, stop)[first::step])

        def sections() -> Iterator[Section]:
            if isinstance(flat, SequentialSource):
                assert flat.sections is not None, "asked only of a source that has sections"
                yield from (_strided_section(section, first, step) for section in flat.sections())
                return
            count = flat.count or 0
            for start in range(0, count, _PART):
                stop = min(start + _PART, count)
                length = (stop - start) // step
                yield Section(partial(read, start, stop), length * flat.dtype.itemsize, start // step, length)

        def pieces() -> Iterator[NDArray[Any]]:
            if not isinstance(flat, SequentialSource) or flat.sections is not None:
                yield from in_turn(sections(), tally)
                return
            yield from _strided(flat.make, 0, first, step)

        source = SequentialSource(
            flat.dtype,
            pieces,
            None if flat.count is None else flat.count // step,
            likely_count(flat) // step,
            tally,
            sections=None if isinstance(flat, SequentialSource) and flat.sections is None else sections,
        )
        return reduce(SequentialSource.within, self.contexts, source)


def _strided(make: Callable[[], Iterator[NDArray[Any]]], start: int, first: int, step: int) -> Iterator[NDArray[Any]]:
    """The parts from the index `start` on whose index is `first` + a multiple of `step`."""
    for piece in make():
        yield np.ascontiguousarray(piece[(first - start) % step :: step])
        start += piece.size


def _strided_section(section: Section, first: int, step: int) -> Section:
    start, count = section.start, section.count
    assert start is not None, "no complex number is left out"
    assert count is not None, "no complex number is left out"
    make = partial(_strided, section.make, start, first, step)
    return Section(make, section.nbytes // step, start // step, count // step)


def flattened(piece: NDArray[Any], parts: "np.dtype[Any] | None") -> NDArray[Any]:
    """The real and the imaginary part of each element of a piece in turn, where the elements are complex numbers whose
    parts have the dtype `parts`; other elements as they are."""
    return piece if parts is None else np.ascontiguousarray(piece).reshape(-1).view(parts)


def complex_numbers(dtype: str, flat: Elements, shape: tuple[int, ...]) -> SequentialSource:
    """The complex numbers of an array of `shape`, whose real and imaginary parts `flat` has in turn. They are read by
    their parts, and never as they are."""

    def refuse() -> NoReturn:
        raise InvalidInput(f"holds {dtype}, which is not read here: its parts are floats of their own", "source")

    count = math.prod(shape)
    return SequentialSource(
        DTYPES[COMPLEX[dtype]],
        refuse,
        count,
        count,
        Tally(absences=flat.tally.absences) if isinstance(flat, SequentialSource) else Tally(),
        shape,
        meaning=ComplexNumbers(dtype, flat),
    )


def reduce_complex(query: Whole, run: Run) -> Reduction:
    """Reduce complex numbers; of two sources one may be of floats. Raises as a backend, and InvalidInput naming "op"
    where they have no such value, or "nan_policy" where NaNs are to be left out: a number may have one in one part."""
    op, sources = query.op, query.sources
    numbers = [number for part in sources if (number := _numbers(part)) is not None]
    for number in numbers:
        number.check(op)
    if query.nan_policy is NanPolicy.OMIT:
        raise InvalidInput(
            "no NaN of complex numbers is left out so far, because one part alone may be NaN; give another policy",
            "nan_policy",
        )
    try:
        if query.other is not None:
            results, values = _dot(query, query.other, run)
        elif op.name in _OF_BOTH:
            results = [run(replace(query, source=numbers[0].part(which))) for which in (0, 1)]
            values = [float(result.value) for result in results]
        else:
            results = [run(replace(query, source=numbers[0].parts()))]
            results[0] = replace(results[0], count=results[0].count // 2)
            values = []
    except InvalidInput as error:
        if error.field == "nan_policy":  # its index is that of a part
            raise InvalidInput("an element is NaN, and nan_policy is raise", "nan_policy") from None
        raise
    for part in sources:
        if isinstance(part, SequentialSource) and _numbers(part) is not None:
            part.tally.add(elements=part.count or 0)
    whole = replace(
        results[0],
        op=op.name,
        correctly_rounded=all(result.correctly_rounded for result in results),
        state=None,
        load_ms=sum(result.load_ms for result in results),
        kernel_ms=sum(result.kernel_ms for result in results),
        prepare_ms=sum(result.prepare_ms for result in results),
        stages=results[0].stages if len(results) == 1 else None,
    )
    if not values:
        return whole
    dtype = next(name for name, part in COMPLEX.items() if part == results[0].dtype)
    return replace(whole, value=values[0], imaginary=values[1], dtype=dtype)


def _numbers(source: Elements) -> ComplexNumbers | None:
    meaning = source.meaning if isinstance(source, SequentialSource) else None
    return meaning if isinstance(meaning, ComplexNumbers) else None


def _dot(query: Whole, other: Elements, run: Run) -> tuple[list[Reduction], list[float]]:
    """Σ x y, whose real part is Σ re re − Σ im im and whose imaginary one Σ re im + Σ im re, each rounded once."""
    source = query.source
    if not (source.dtype.is_float and other.dtype.is_float):
        raise InvalidInput("dot of complex numbers takes floats or complex numbers beside them", "other")
    sides = [[source] if (of := _numbers(source)) is None else [of.part(0), of.part(1)]]
    sides.append([other] if (of := _numbers(other)) is None else [of.part(0), of.part(1)])
    results: list[Reduction] = []
    sums: list[ExactState | None] = [None, None]
    for i in range(len(sides[0])):
        for j in range(len(sides[1])):
            left, right = (_anew(part) for part in (sides[0][i], sides[1][j]))
            result = run(replace(query, source=left, other=right))
            if result.state is None:
                raise InvalidInput("dot of complex numbers needs the strategy exact", "strategy")
            state, so_far = ExactState.from_bytes(result.state), sums[(i + j) % 2]
            state = state.negate() if i == j == 1 else state
            sums[(i + j) % 2] = state if so_far is None else so_far.merge(state)
            results.append(result)
    dtype = DTYPES[results[0].dtype]
    return results, [0.0 if each is None else each.round_to(dtype) for each in sums]


def _anew(source: Elements) -> Elements:
    """The same elements, to be read once more."""
    return replace(source, tally=Tally()) if isinstance(source, SequentialSource) else source
