"""Elements of a generated source as a NumPy array."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.generate.plan import Formula, Generated, Plan, plan
from warpfold.kernels.lowering.conversion import narrow_into
from warpfold.kernels.machine.cores import usable_cores

TILE = 1 << 13
"""Elements made at a time: 64 KiB of float64 stay in the cache until they are rounded into the result."""

PARALLEL = 1 << 18
"""Elements from which threads pay."""


def generate(source: Generated, start: int, stop: int) -> NDArray[Any]:
    """Elements start … stop−1 of `source`, shape (stop − start,), in its dtype; 0 ≤ start ≤ stop ≤ count.

    Any split into ranges gives the same elements. Raises InvalidInput as `kernels.generate.plan` does.
    """
    made = plan(source)
    if not 0 <= start <= stop <= source.count:
        raise IndexError(f"elements {start} … {stop} of {source.count}")
    out = np.empty(stop - start, dtype=source.dtype.numpy)
    if out.size < PARALLEL:
        _fill(made, out, start)
        return out
    threads = usable_cores()
    # Whole tiles a thread, so that only the last one is partial.
    step = -(-out.size // threads // TILE) * TILE
    with ThreadPoolExecutor(threads) as pool:
        parts = range(0, out.size, step)
        list(pool.map(lambda at: _fill(made, out[at : at + step], start + at), parts))
    return out


def _fill(made: Plan, out: NDArray[Any], start: int) -> None:
    if made.formula is Formula.CONSTANT:
        out[:] = made.a if made.dtype.is_float else made.low
        return
    fill = _floats(made) if made.dtype.is_float else _integers(made)
    for at in range(0, out.size, TILE):
        part = out[at : at + TILE]
        fill(part, start + at)


Fill = Callable[[NDArray[Any], int], None]
"""Writes the elements from an index on into a tile of the result."""


def _floats(made: Plan) -> Fill:
    """The formula in float64, then one rounding to the dtype."""
    if made.formula is Formula.ALL_EXPONENTS:
        return _bits(made)
    scratch = np.empty(TILE)
    pattern = np.array([1e8, 1.0, -1e8])

    def fill(part: NDArray[Any], start: int) -> None:
        values = scratch[: part.size]
        match made.formula:
            case Formula.ARANGE:
                values[:] = _indices(part, start)
            case Formula.MODULO:
                np.multiply(_indices(part, start) % made.period, made.a, out=values)
            case Formula.PATHOLOGICAL:
                values[:] = pattern[_indices(part, start) % 3]
            case _:
                _draw(made, values, np.uint64(start))
        narrow_into(part, values, made.dtype)

    return fill


def _indices(part: NDArray[Any], start: int) -> NDArray[np.int64]:
    return np.arange(start, start + part.size, dtype=np.int64)


def _keys(made: Plan) -> tuple[np.uint64, np.uint64]:
    """Philox' key: the two words of the seed."""
    return np.uint64(made.seed & 0xFFFFFFFF), np.uint64(made.seed >> 32)


def _draw(made: Plan, values: NDArray[np.float64], first: np.uint64) -> None:
    """Fill `values` with the random elements from index `first` on."""
    from warpfold.kernels.generate import compiled  # loads Numba, so only where something is drawn

    key0, key1 = _keys(made)
    match made.formula:
        case Formula.UNIFORM:
            compiled.fill_uniform(values, first, key0, key1, made.a, made.b, made.c)
        case Formula.NORMAL:
            compiled.fill_normal(values, first, key0, key1, made.a, made.b)
        case Formula.LOGNORMAL:
            compiled.fill_lognormal(values, first, key0, key1, made.a, made.b)
        case Formula.MIXED:
            compiled.fill_mixed(values, first, key0, key1, made.a, made.b)
        case Formula.ILL_CONDITIONED:
            compiled.fill_ill_conditioned(values, first, key0, key1, made.a, np.uint64(made.third))


def _bits(made: Plan) -> Fill:
    """Random bit patterns: nothing is rounded."""
    from warpfold.kernels.generate import compiled

    key0, key1 = _keys(made)
    width, fraction = 8 * made.dtype.itemsize, made.dtype.precision - 1
    scratch = np.empty(TILE, dtype=np.uint64)

    def fill(part: NDArray[Any], start: int) -> None:
        patterns = scratch[: part.size]
        compiled.fill_bits(
            patterns, np.uint64(start), key0, key1, np.uint64(width), np.uint64(fraction), np.uint64(made.span)
        )
        part.view(f"uint{width}")[:] = patterns

    return fill


def _integers(made: Plan) -> Fill:
    """The formula modulo 2**64, of which the dtype keeps the low bits."""
    key0, key1 = _keys(made)
    low = np.uint64(made.low % (1 << 64))
    scratch = np.empty(TILE, dtype=np.uint64)
    pattern = np.array([10**8, 1, -(10**8)], dtype=np.int64).view(np.uint64)

    def fill(part: NDArray[Any], start: int) -> None:
        words = scratch[: part.size]
        words[:] = np.arange(start, start + part.size, dtype=np.uint64)
        match made.formula:
            case Formula.MODULO:
                words %= np.uint64(made.period)
                words *= low
            case Formula.PATHOLOGICAL:
                words[:] = pattern[words % np.uint64(3)]
            case Formula.UNIFORM:
                from warpfold.kernels.generate import compiled

                compiled.fill_integers(words, np.uint64(start), key0, key1, low, np.uint64(made.span))
        part[:] = words

    return fill
