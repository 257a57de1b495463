"""Products of several elements without a rounding: as sums of float64, of which any exact accumulator of values makes
the total.

A product of two float64 is their rounded product and its error, which is a float64, too (Dekker 1971). The product of
three or four elements is a few such pairs. That needs elements whose exponents are not far from 0. All others are
scaled by powers of two, class by class, and what a class comes to is scaled back as an integer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, Kind

Floats = NDArray[np.float64]

Scales = tuple[int, ...]
"""The class of the elements of each factor: the exponent by whose STEP they are scaled."""

_LOW = -200
_STEP = 440
LOW, HIGH = 2.0**_LOW, 2.0 ** (_LOW + _STEP)
"""Elements of 2**-200 up to 2**240 are of class 0: the errors of their products of four are at least 2**-1074, and no
step on the way to them overflows. Those from 2**240 up to 2**680 are of class 1, and so on."""

_BITS = 53
SPLITTER = float((1 << 27) + 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """Float64 of so many significant bits at most."""

    array: Floats
    bits: int


@dataclass(frozen=True)
class Expansion:
    """The products that a total of `factors` adds up, such as "xxy": of each element x and y of these dtypes. With
    `omit` products with a NaN factor are 0. `met` collects the classes of products that are not of the class asked
    for; several threads may add to it."""

    factors: str
    dtypes: Mapping[str, DType]
    omit: bool = False
    met: set[Scales] = field(default_factory=set)

    @property
    def letters(self) -> tuple[str, ...]:
        """The factors, each once."""
        return tuple(sorted(set(self.factors.strip("|"))))

    @property
    def base(self) -> Scales:
        """The class of products whose factors are not scaled."""
        return (0,) * len(self.letters)

    @property
    def width(self) -> int:
        """How many float64 a product is."""
        return len(self._products([np.ones(1) for _ in self.letters]))

    def places(self, scales: Scales) -> int:
        """The power of two by which the products of a class are divided."""
        return sum(
            _STEP * scale * self.factors.count(letter) for letter, scale in zip(self.letters, scales, strict=True)
        )

    def of(self, arrays: Sequence[NDArray[Any]], scales: Scales) -> Floats:
        """The products of these elements, one array for each of `letters`, that are of a class: float64 of shape
        (width, elements), whose sum over the first axis is the product divided by 2**places. Products of another class
        are 0, and those that are not finite are of the class `base`."""
        magnitudes = self.factors.startswith("|")
        wide = [
            _wide(array, self.dtypes[letter], magnitudes) for letter, array in zip(self.letters, arrays, strict=True)
        ]
        odd = _any_of([~np.isfinite(each) for each in wide])
        classes = [self._classes(letter, each) for letter, each in zip(self.letters, wide, strict=True)]
        if odd is None and scales == self.base and not any(each.size for each in classes):
            return np.stack(self._products(wide))
        return self._of_some(wide, odd, classes, scales)

    def _of_some(self, wide: list[Floats], odd: Any, classes: list[NDArray[np.int64]], scales: Scales) -> Floats:
        each_class = [own if own.size else np.zeros(wide[0].size, np.int64) for own in classes]
        odd = np.zeros(wide[0].size, np.bool_) if odd is None else odd
        of_class = ~odd
        for own, scale in zip(each_class, scales, strict=True):
            of_class &= own == scale
        if scales == self.base:
            others = ~odd & ~of_class
            self.met.update(map(tuple, np.unique(np.stack(each_class)[:, others], axis=1).T.tolist()))
        with np.errstate(over="ignore", invalid="ignore"):  # of elements of another class
            scaled = [
                np.where(of_class, array * 2.0 ** (-_STEP * scale) if scale else array, 0.0)
                for array, scale in zip(wide, scales, strict=True)
            ]
        products = np.stack(self._products(scaled))
        if scales == self.base and odd.any():
            products[0, odd] = self._odd_products([array[odd] for array in wide])
        return products

    def _odd_products(self, wide: list[Floats]) -> Floats:
        """The products of which some factor is not finite: infinities and NaN, as IEEE 754 has them."""
        product = np.ones(wide[0].size)
        with np.errstate(invalid="ignore"):
            for letter in self.factors.strip("|"):
                factor = wide[self.letters.index(letter)]
                product = product * np.where(np.isinf(factor), factor, np.sign(factor))
        if self.omit:
            missing = _any_of([np.isnan(each) for each in wide])
            product = product if missing is None else np.where(missing, 0.0, product)
        return product

    def _classes(self, letter: str, wide: Floats) -> NDArray[np.int64]:
        """The class of each element; an empty array where all are of class 0, as those of other dtypes always are."""
        if self.dtypes[letter] is not DTYPES["float64"]:
            return np.zeros(0, np.int64)
        sizes = np.abs(wide)
        outside = ~((sizes >= LOW) & (sizes < HIGH)) & (sizes > 0) & np.isfinite(sizes)
        if not outside.any():
            return np.zeros(0, np.int64)
        classes = np.zeros(wide.size, np.int64)
        classes[outside] = (np.frexp(sizes[outside])[1].astype(np.int64) - 1 - _LOW) // _STEP
        return classes

    def _products(self, wide: Sequence[Floats]) -> list[Floats]:
        """The parts of the products of elements that are finite and of class 0. The errors of their factors are 0 for
        narrow dtypes, and left out."""
        parts = {letter: _parts(each, self.dtypes[letter]) for letter, each in zip(self.letters, wide, strict=True)}
        made: list[_Part] | None = None
        rest = self.factors.strip("|")
        for letter in self.letters:
            count = rest.count(letter)
            power = _power(parts[letter], count)
            made = power if made is None else _product(made, power)
        assert made is not None, "there are factors"
        return [part.array for part in made]


def _any_of(masks: list[NDArray[np.bool_]]) -> NDArray[np.bool_] | None:
    """Where any mask is set; None where none is."""
    some: NDArray[np.bool_] = np.logical_or.reduce(masks)
    return some if some.any() else None


def _wide(array: NDArray[Any], dtype: DType, magnitudes: bool) -> Any:
    """Elements as they are multiplied: integers of 64 bits as they are, and all others as float64."""
    if not dtype.is_float and dtype.itemsize == 8:
        return np.abs(array).view(np.uint64) if magnitudes and dtype.kind is Kind.INT else array
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide = array.astype(np.float64)
    return np.abs(wide) if magnitudes else wide


def _parts(array: NDArray[Any], dtype: DType) -> list[_Part]:
    """Elements as float64. An integer of 64 bits is two."""
    if dtype.is_float:
        return [_Part(array, dtype.precision)]
    if dtype.itemsize < 8:
        return [_Part(array, 1 if dtype.kind is Kind.BOOL else 8 * dtype.itemsize)]
    high = array // array.dtype.type(1 << 32)
    low = array - high * array.dtype.type(1 << 32)
    return [_Part(high.astype(np.float64) * 2.0**32, 32), _Part(low.astype(np.float64), 32)]


def _power(parts: list[_Part], count: int) -> list[_Part]:
    if count == 1:
        return parts
    square = _square(parts)
    return square if count == 2 else _product(square, parts) if count == 3 else _square(square)


def _product(left: list[_Part], right: list[_Part]) -> list[_Part]:
    return [part for a in left for b in right for part in _of_two(a, b)]


def _square(parts: list[_Part]) -> list[_Part]:
    squares = [part for each in parts for part in _of_two(each, each)]
    pairs = ((_Part(2.0 * a.array, a.bits), b) for a, b in combinations(parts, 2))
    return squares + [part for a, b in pairs for part in _of_two(a, b)]


def _of_two(a: _Part, b: _Part) -> list[_Part]:
    """The rounded products and, unless they have few bits, their errors."""
    x, y = a.array, b.array
    rounded = x * y
    if a.bits + b.bits <= _BITS:
        return [_Part(rounded, a.bits + b.bits)]
    x_high, x_low = halves(x)
    y_high, y_low = (x_high, x_low) if y is x else halves(y)
    error = x_high * y_high
    error -= rounded
    error += x_high * y_low
    error += x_low * y_high
    error += x_low * y_low
    return [_Part(rounded, _BITS), _Part(error, _BITS)]


def halves(x: Floats) -> tuple[Floats, Floats]:
    """x as a sum of two floats of at most 26 bits, whose products are exact (Veltkamp)."""
    high = x * SPLITTER
    high -= high - x
    return high, x - high
