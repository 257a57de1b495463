"""Every aggregate, by the name that rows of `kernels/ops/table.py` give."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from warpfold.kernels.aggregates.aggregate import Aggregate
from warpfold.kernels.aggregates.collected import Distinct, MostFrequent
from warpfold.kernels.aggregates.count import Nonzero
from warpfold.kernels.aggregates.extreme import LeastKey, Span
from warpfold.kernels.aggregates.histogram import Histogram
from warpfold.kernels.aggregates.integer_sum import IntegerSum
from warpfold.kernels.aggregates.picked import Picked
from warpfold.kernels.aggregates.portable_sum import PortableSum
from warpfold.kernels.aggregates.product import Product
from warpfold.kernels.aggregates.quantile import Quantile
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.ops import Extreme, Op, Terms


class Make(Protocol):
    def __call__(self, op: Op, dtype: DType, *, omit: bool = False) -> Aggregate: ...


AGGREGATES: Mapping[str, Make] = MappingProxyType(
    {
        "extreme": LeastKey,
        "nonzero": Nonzero,
        "count": Nonzero,
        "product": Product,
        "quantile": Quantile,
        "distinct": Distinct,
        "mode": MostFrequent,
        "span": Span,
        "picked": Picked,
        "histogram": Histogram,
    }
)


def aggregate_of(op: Op, dtype: DType, *, omit: bool = False) -> Aggregate:
    """The aggregate of an op that adds nothing up, over elements of `dtype`; with `omit` it leaves NaNs out. A product
    of truth values is a test."""
    fold = "nonzero" if op.fold == "product" and dtype.kind is Kind.BOOL else op.fold
    return AGGREGATES[fold](op, dtype, omit=omit)


def exact_sum(
    dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool, compiled: bool = True
) -> IntegerSum | PortableSum:
    """The sum of elements of one dtype or of products of two, integers or truth values if it is `compiled`."""
    make = IntegerSum if compiled else PortableSum
    return make(dtypes, terms, magnitudes=magnitudes)


def combines(op: Op) -> bool:
    """Whether partial values of `op` make its value. Products do not: one of integers may be too long in a partition
    and zero as a whole. Nor do quantiles and numbers of different elements, which need all elements."""
    return op.adds or AGGREGATES[op.fold] in (LeastKey, Nonzero)


def selecting(op: Op, dtype: DType) -> LeastKey | Nonzero:
    """The aggregate of an op that adds nothing up, whose state follows from values."""
    aggregate = aggregate_of(op, dtype)
    assert isinstance(aggregate, LeastKey | Nonzero), f"no state of {op.name} follows from values"
    return aggregate


def op_of_values(op: Op) -> str:
    """The op by whose values `selecting` makes states of `op`: the element that argmin or argmax looks for, and for any
    and all the number of elements that are not zero."""
    if op.places:
        return "min" if op.extreme is Extreme.LEAST else "max"
    return op.name if op.extreme is not None else "count_nonzero"
