"""The kinds of ops: what they add up, what they look for, and how their values follow."""

from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    """How an op's result dtype follows from the element dtype."""

    ELEMENT = "element"  # the element dtype itself
    WIDE = "wide"  # a float's own dtype; an integer of any size for integers and bool
    REAL = "real"  # a float's own dtype; float64 for integers and bool
    INDEX = "index"  # int64
    TRUTH = "truth"  # bool


class Terms(StrEnum):
    """The terms that an exact accumulator of the op adds up."""

    VALUES = "values"  # the elements, or their magnitudes
    PRODUCTS = "products"  # exact products of two elements
    TRIPLES = "triples"  # exact products of three elements
    QUADRUPLES = "quadruples"  # exact products of four elements
    MOMENTS = "moments"  # the elements and, in a second accumulator, their squares
    TOTALS = "totals"  # the products of elements that the row names, in an accumulator each
    NONE = "none"  # the op multiplies, selects or tests elements: nothing is added


class Finish(StrEnum):
    """How the value of an op follows from its total, or from the element that it found."""

    ITSELF = "itself"
    MEAN = "mean"  # the total ÷ the count
    ROOT = "root"  # √ of the total
    VARIANCE = "variance"  # (Σx² − (Σx)² / n) / (n − ddof), from two totals
    DEVIATION = "deviation"  # √ of the variance
    OF_TOTALS = "of totals"  # what the function of the row makes of several totals


class Extreme(StrEnum):
    """The element that an op looks for."""

    LEAST = "least"
    MOST = "most"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An element beside a quantile: the upper one or the lower one, in ascending or descending order."""

    upper: bool
    descending: bool
