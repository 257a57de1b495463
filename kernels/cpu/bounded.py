"""Many numbers that are known to lie within bounds: pairs of float64, each with a bound of its error.

The function of an op (`kernels.ops.finishes`) is written for integers. It runs once for many values if these numbers
take the place of the integers. Comparisons in it are taken to hold, and `Bounds` notes for which values they are known
to hold.
"""

from dataclasses import dataclass, field
from typing import Union

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.exact.expansion import Floats, halves

_STEP = 2.0**-102
"""What a sum or a product of pairs loses of its operands: 16 u², of which the steps take up to 8 u², u = 2**−53."""

_LEAST = 2.0**-900
"""More than all that is lost where parts of a product are too small for float64."""

_MORE = 1.0 + 2.0**-40
"""Covers what the bounds themselves lose when they are rounded, and the low parts of pairs."""


@dataclass
class Bounds:
    """Which of many values have met all conditions so far."""

    met: NDArray[np.bool_]

    def require(self, holds: NDArray[np.bool_]) -> bool:
        self.met &= holds
        return True


@dataclass(frozen=True, eq=False)
class Bounded:
    """Numbers within `error` of high + low, where `high` is the float64 nearest to that sum."""

    high: Floats
    low: Floats
    error: Floats
    bounds: Bounds = field(repr=False)

    def __add__(self, other: "Number") -> "Bounded":
        other = self._beside(other)
        total, rest = _two_sum(self.high, other.high)
        high, low = _two_sum(total, rest + (self.low + other.low))
        lost = (np.abs(self.high) + np.abs(other.high)) * _STEP
        return Bounded(high, low, (self.error + other.error + lost) * _MORE, self.bounds)

    def __neg__(self) -> "Bounded":
        return Bounded(-self.high, -self.low, self.error, self.bounds)

    def __sub__(self, other: "Number") -> "Bounded":
        return self + -self._beside(other)

    def __rsub__(self, other: int) -> "Bounded":
        return -self + other

    def __mul__(self, other: "Number") -> "Bounded":
        other = self._beside(other)
        product, rest = _two_product(self.high, other.high)
        high, low = _two_sum(product, rest + (self.high * other.low + self.low * other.high))
        of_errors = np.abs(self.high) * other.error + np.abs(other.high) * self.error + self.error * other.error
        error = (of_errors * _MORE + np.abs(product) * _STEP + _LEAST) * _MORE
        return Bounded(high, low, error, self.bounds)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, degree: int) -> "Bounded":
        power = self
        for _ in range(degree - 1):
            power = power * self
        return power

    def __abs__(self) -> "Bounded":
        self.bounds.require(np.abs(self.high) > self.error * 2)
        signs = np.sign(self.high)
        return Bounded(self.high * signs, self.low * signs, self.error, self.bounds)

    def __bool__(self) -> bool:
        return self.bounds.require(np.abs(self.high) > self.error * 2)

    def __gt__(self, other: int) -> bool:
        return self.bounds.require((self - other).high > (self - other).error * 2)

    __ge__ = __gt__

    def __ne__(self, other: object) -> bool:
        assert isinstance(other, int | Bounded), "numbers are compared with numbers"
        return bool(self - other)

    def __truediv__(self, other: "Number") -> "Bounded":
        other = self._beside(other)
        least = np.abs(other.high) * (1 - 2.0**-50) - other.error
        self.bounds.require(least > 0)
        with np.errstate(all="ignore"):  # where a divisor may be 0
            about = self.high / other.high
            rest = self - other * Bounded(about, np.zeros_like(about), np.zeros_like(about), self.bounds)
            step = (rest.high + rest.low) / other.high
            loose = (np.abs(other.low) + other.error) / np.abs(other.high) + 2.0**-50
            error = (rest.error / least + np.abs(step) * 2 * loose) * _MORE
            high, low = _two_sum(about, step)
        return Bounded(high, low, error, self.bounds)

    def root(self, degree: int) -> "Bounded":
        """The roots of 1 ≤ `degree` ≤ 4, with the signs of the numbers."""
        if degree == 1:
            return self
        signs, size = np.sign(self.high), abs(self)
        about = np.cbrt(size.high) if degree == 3 else np.sqrt(size.high if degree == 2 else np.sqrt(size.high))
        near = Bounded(about, np.zeros_like(about), np.zeros_like(about), self.bounds)
        rest, slope = size - near**degree, degree * about ** (degree - 1)
        step = (rest.high + rest.low) / slope
        error = (rest.error / slope * (1 + 2.0**-30) + np.abs(step) * 2.0**-45) * _MORE
        # The first guess is right to 2**-45, so that the slope is, too, unless the error is larger than that.
        self.bounds.require(np.abs(step) + error < about * 2.0**-46)
        high, low = _two_sum(about, step)
        return Bounded(high * signs, low * signs, error, self.bounds)

    def _beside(self, other: "Number") -> "Bounded":
        if isinstance(other, Bounded):
            return other
        assert abs(other) < 1 << 53, "the functions of ops have small constants"
        nothing = np.zeros_like(self.high)
        return Bounded(np.full_like(self.high, other), nothing, nothing, self.bounds)


Number = Union[Bounded, int]  # noqa: UP007 (the class is not defined yet when the methods name it)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b rounded, and what that leaves (Knuth 1969)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a · b rounded, and what that leaves (Dekker 1971)."""
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
