"""The distributions that a generated source may name, one row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warpfold.kernels.dtypes import DTYPES, Kind
from warpfold.kernels.errors import InvalidInput

FLOATS = tuple(row.name for row in DTYPES.values() if row.kind is Kind.FLOAT)
WIDE_FLOATS = tuple(name for name in FLOATS if DTYPES[name].max_exponent > 27)  # they hold 1e8
INTEGERS = tuple(row.name for row in DTYPES.values() if row.kind in (Kind.INT, Kind.UINT))
EVERY = tuple(DTYPES)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that shapes a distribution. `default` applies where a source does not give it."""

    name: str
    default: float
    summary: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """A rule that gives element i of an array from (seed, i); `dtypes` names the element types it can fill."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    dtypes: tuple[str, ...]


_ROWS = (
    Distribution("constant", "every element is `value`", (Parameter("value", 1.0, "the element"),), EVERY),
    Distribution("zeros", "every element is 0", (), EVERY),
    Distribution("arange", "0, 1, 2, …, each rounded to the dtype", (), EVERY),
    Distribution(
        "modulo",
        "(i % m) · scale, multiplied in the dtype",
        (Parameter("m", 50.0, "period, an integer of at least 1"), Parameter("scale", 1.0, "factor")),
        EVERY,
    ),
    Distribution(
        "uniform",
        "evenly between `low` and `high`: real numbers for float dtypes, whole numbers (both ends included) for others",
        (Parameter("low", 0.0, "least value"), Parameter("high", 1.0, "greatest value")),
        EVERY,
    ),
    Distribution(
        "normal",
        "Gaussian N(mean, std²)",
        (Parameter("mean", 0.0, "centre"), Parameter("std", 1.0, "standard deviation, at least 0")),
        FLOATS,
    ),
    Distribution(
        "lognormal",
        "exp of N(mean, sigma²)",
        (Parameter("mean", 0.0, "centre of the logarithm"), Parameter("sigma", 1.0, "its standard deviation")),
        FLOATS,
    ),
    Distribution("mixed", "uniform(1e6, 1e8) or uniform(1e-3, 1e-1), by a fair coin an element", (), WIDE_FLOATS),
    Distribution("pathological", "1e8, 1, −1e8 repeated", (), (*WIDE_FLOATS, "int32", "int64")),
    Distribution(
        "all_exponents",
        "random sign, every finite exponent of the dtype equally often (subnormals are one), random significand",
        (),
        FLOATS,
    ),
    Distribution(
        "ill_conditioned",
        "a third of the elements cancels another third exactly, so that Σ|x| / |Σx| is about `condition` (n ≥ 3)",
        (Parameter("condition", 1e3, "Σ|x| / |Σx|, at least 1"),),
        FLOATS,
    ),
)

DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType({row.name: row for row in _ROWS})


def distribution_named(name: str) -> Distribution:
    """The row called `name`; InvalidInput that names `source.distribution` for an unknown name."""
    try:
        return DISTRIBUTIONS[name]
    except KeyError:
        known = ", ".join(DISTRIBUTIONS)
        raise InvalidInput(f"unknown distribution {name!r}; known: {known}", "source.distribution") from None
