"""Writes the conformance vectors of this folder: `python tests/data/exact/make_vectors.py` from the repository's root.

Everything comes from `kernels.ops.reference`, in Python integers and fractions; the random numbers from
`random.Random`, so the files are the same every time. `docs/exact-state.md` says what the fields mean.
"""

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import OPS, NanPolicy, Terms, reference

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """Input data with a name, as patterns of bits."""

    name: str
    bits: tuple[int, ...]


def cases(dtype: DType) -> list[Case]:
    """The inputs for one dtype."""
    chance = random.Random(f"warpfold {dtype.name}")
    made = _float_cases(dtype, chance) if dtype.is_float else _other_cases(dtype, chance)
    return [Case(name, tuple(bits)) for name, bits in made]


def _float_cases(dtype: DType, chance: random.Random) -> Iterator[tuple[str, Sequence[int]]]:
    width, fraction_bits = 8 * dtype.itemsize, dtype.precision - 1
    sign, unit = 1 << (width - 1), 1 << fraction_bits
    top = 2 * dtype.max_exponent - 1  # the exponent field of infinities and NaN
    infinity, largest = top * unit, top * unit - 1
    nan = infinity | unit >> 1

    def random_finite(low: int = 0, high: int = top - 1) -> int:
        return chance.getrandbits(1) * sign | chance.randint(low, high) * unit | chance.getrandbits(fraction_bits)

    def number(value: float) -> int:
        return reference.pattern(reference.nearest(Fraction(value), dtype), dtype)

    middle = dtype.max_exponent - 1
    yield "nothing", []
    yield "plus zero", [0]
    yield "minus zero", [sign]
    yield "minus zeros", [sign] * 5
    yield "zeros of both signs", [sign, 0, sign]
    yield "one", [number(1.0)]
    yield "smallest subnormal", [1]
    yield "largest", [largest]
    yield "a million and one, cancelled", [number(60000.0), number(1.0), sign | number(60000.0)]
    yield "huge, small, cancelled", [largest, 1, sign | largest, sign | 1, 3]
    yield "overflow", [largest, largest, 1]
    yield "overflow, then cancelled", [largest] * 3 + [sign | largest] * 3 + [number(1.5)]
    yield "overflow by half an ulp", [largest, (top - 1 - dtype.precision) * unit]
    yield "just below overflow", [largest, (top - 2 - dtype.precision) * unit]
    yield "tie to even, down", [number(1.0), number(2.0**-dtype.precision)]
    yield "tie to even, up", [number(1.0) | 1, number(2.0**-dtype.precision)]
    yield "tie broken by the smallest subnormal", [number(1.0), number(2.0**-dtype.precision), 1]
    yield "subnormals", [chance.getrandbits(1) * sign | chance.getrandbits(fraction_bits) for _ in range(40)]
    yield (
        "every exponent",
        [chance.getrandbits(1) * sign | e * unit | chance.getrandbits(fraction_bits) for e in range(top)],
    )
    yield "every exponent, cancelled", [s | e * unit for s in (0, sign) for e in range(top)] + [1]
    yield "random", [random_finite() for _ in range(100)]
    yield "near one", [random_finite(middle - 3, middle + 3) for _ in range(100)]
    yield "equal", [number(0.1)] * 64
    yield "ties of the extremes", [number(2.0), number(-3.0), number(2.0), number(-3.0), number(0.5)]
    yield "infinity", [number(1.0), infinity, number(-5.0)]
    yield "minus infinity", [number(1.0), sign | infinity, sign | infinity]
    yield "infinities of both signs", [infinity, number(1.0), sign | infinity]
    yield "NaN", [number(4.0), nan, number(-1.0)]
    yield "NaN of every kind", [nan, sign | nan, infinity | 1, sign | infinity | unit - 1]
    yield "NaN and minus zero", [nan, sign, sign]
    yield "NaN and infinity", [infinity, number(-2.0), nan, number(7.0), sign | nan]


def _other_cases(dtype: DType, chance: random.Random) -> Iterator[tuple[str, Sequence[int]]]:
    width = 8 * dtype.itemsize
    low, high = dtype.bounds
    yield "nothing", []
    yield "zero", [0]
    yield "zeros", [0] * 5
    yield "smallest", [low % (1 << width)]
    yield "largest", [high]
    yield "beyond the width", [high] * 9
    yield "both ends", [low % (1 << width), high, low % (1 << width), high, 1]
    yield "small", [chance.randint(0, min(high, 3)) for _ in range(20)]
    yield "no zero", [1 if high == 1 else chance.randint(1, high) for _ in range(20)]
    yield "random", [chance.randint(low, high) % (1 << width) for _ in range(100)]


def state(summed: reference.SummedTerms, terms: Terms) -> dict[str, Any]:
    """A state's canonical bytes and the digits in them."""
    first, digits = reference.digits_of(summed.finite, terms)
    return {"first": first, "limbs": digits, "bytes": reference.state_bytes(summed, terms).hex()}


def results(dtype: DType, bits: Sequence[int], nan_policy: NanPolicy) -> dict[str, Any]:
    """The value of every op of one source: `{"value", "count"}`, or `{"undefined"}`; var and std with ddof 0."""
    ops = [op for op in OPS.values() if op.sources == 1 and op.terms is not Terms.TOTALS]
    return {op.name: written(reference.reduce(op, dtype, bits, nan_policy)) for op in ops}


def spreads(dtype: DType, bits: Sequence[int], nan_policy: NanPolicy) -> dict[str, Any]:
    """Of the ops that take a ddof, the value with 1."""
    ops = [op for op in OPS.values() if op.terms is Terms.MOMENTS]
    return {op.name: written(reference.reduce(op, dtype, bits, nan_policy, ddof=1)) for op in ops}


def written(outcome: reference.Answer | reference.Undefined) -> dict[str, Any]:
    """Floats as `float.hex` prints them or nan, inf, -inf; integers as decimal strings, which no reader rounds."""
    if isinstance(outcome, reference.Undefined):
        return {"undefined": outcome.reason}
    value = outcome.value
    if isinstance(value, bool):
        return {"value": value, "count": outcome.count}
    if isinstance(value, int):
        return {"value": str(value), "count": outcome.count}
    return {"value": value.hex() if math.isfinite(value) else str(value), "count": outcome.count}


def vector(dtype: DType, case: Case) -> dict[str, Any]:
    """All that is known of one case."""
    elements = [reference.element(pattern, dtype) for pattern in case.bits]
    summed = {name: reference.terms_of(OPS[op], elements) for name, op in STATES.items()}
    policies = list(NanPolicy) if dtype.is_float else [NanPolicy.PROPAGATE]
    return {
        "name": case.name,
        "inputs": [f"{pattern:0{2 * dtype.itemsize}x}" for pattern in case.bits],
        "states": {
            name: state(reference.total(terms, dtype if name == "values" else _UNSIGNED), OPS[STATES[name]].terms)
            for name, terms in summed.items()
        },
        "results": {policy.value: results(dtype, case.bits, policy) for policy in policies},
        "ddof 1": {policy.value: spreads(dtype, case.bits, policy) for policy in policies},
    }


STATES = {"values": "sum", "magnitudes": "norm1", "products": "sum_squares"}
"""The three states of an array, and an op whose terms each one adds."""

_UNSIGNED = DTYPES["uint8"]
"""Magnitudes and squares have no −0, as integers have none."""


def document(dtype: DType) -> str:
    """The file of one dtype."""
    made = {"dtype": dtype.name, "version": 1, "cases": [vector(dtype, case) for case in cases(dtype)]}
    return (
        json.dumps(made, indent=None, separators=(",", ":"), ensure_ascii=True).replace('{"name"', '\n{"name"') + "\n"
    )


def merges() -> str:
    """Sums of values of different dtypes: the bytes of each case's state, and of all of them together."""
    made = []
    for name in ("random", "subnormals", "infinity", "minus zero", "both ends"):
        matching = [(dtype, case) for dtype in DTYPES.values() for case in cases(dtype) if case.name == name]
        sums = [
            reference.total([reference.element(bits, dtype) for bits in case.bits], dtype) for dtype, case in matching
        ]
        whole = reference.SummedTerms(
            finite=sum((part.finite for part in sums), Fraction(0)),
            count=sum(part.count for part in sums),
            nan=any(part.nan for part in sums),
            positive_infinity=any(part.positive_infinity for part in sums),
            negative_infinity=any(part.negative_infinity for part in sums),
            all_negative_zero=all(part.all_negative_zero for part in sums),
        )
        parts = [reference.state_bytes(part, Terms.VALUES).hex() for part in sums]
        made.append({"name": name, "parts": parts, "merged": reference.state_bytes(whole, Terms.VALUES).hex()})
    return json.dumps({"version": 1, "merges": made}, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n"


def dots() -> str:
    """Dot products of each dtype with itself and with others of its kind, both sources cut to one length."""
    made = []
    for left, right in PAIRS:
        xs, ys = ({case.name: case.bits for case in cases(DTYPES[name])} for name in (left, right))
        for first, second in _DOTTED_FLOATS if DTYPES[left].is_float else _DOTTED_OTHERS:
            length = min(len(xs[first]), len(ys[second]))
            made.append(dotted(DTYPES[left], xs[first][:length], DTYPES[right], ys[second][:length]))
    return json.dumps({"version": 1, "dots": made}, separators=(",", ":")).replace('{"left"', '\n{"left"') + "\n"


def dotted(left: DType, xs: Sequence[int], right: DType, ys: Sequence[int]) -> dict[str, Any]:
    """All that is known of one dot product."""
    op = OPS["dot"]
    policies = list(NanPolicy) if left.is_float else [NanPolicy.PROPAGATE]
    pairs = [(reference.element(x, left), reference.element(y, right)) for x, y in zip(xs, ys, strict=True)]
    return {
        "left": left.name,
        "right": right.name,
        "inputs": [
            [f"{pattern:0{2 * dtype.itemsize}x}" for pattern in bits] for dtype, bits in ((left, xs), (right, ys))
        ],
        "state": state(reference.dot_total(pairs, left), op.terms),
        "results": {
            policy.value: written(reference.of_pairs(op, (left, xs), (right, ys), policy)) for policy in policies
        },
    }


PAIRS = (
    *((name, name) for name in DTYPES),
    ("float16", "bfloat16"),
    ("bfloat16", "float32"),
    ("float64", "float16"),
    ("float32", "float64"),
    ("int8", "uint64"),
    ("int64", "uint64"),
    ("uint16", "int64"),
    ("bool", "int32"),
)
"""Dtypes whose dot product has vectors."""

_DOTTED_FLOATS = (
    ("nothing", "random"),
    ("minus zeros", "equal"),
    ("minus zeros", "minus zeros"),
    ("random", "near one"),
    ("near one", "equal"),
    ("subnormals", "random"),
    ("subnormals", "subnormals"),
    ("overflow, then cancelled", "equal"),
    ("huge, small, cancelled", "huge, small, cancelled"),
    ("infinity", "near one"),
    ("infinities of both signs", "equal"),
    ("minus infinity", "zeros of both signs"),
    ("NaN", "near one"),
    ("NaN and infinity", "NaN"),
)
_DOTTED_OTHERS = (
    ("nothing", "random"),
    ("random", "random"),
    ("both ends", "both ends"),
    ("both ends", "beyond the width"),
    ("beyond the width", "no zero"),
    ("small", "no zero"),
)


def documents() -> dict[str, str]:
    """Every file of the folder by its name."""
    return {f"{dtype.name}.json": document(dtype) for dtype in DTYPES.values()} | {
        "dots.json": dots(),
        "merges.json": merges(),
    }


def main() -> None:
    for name, text in documents().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
