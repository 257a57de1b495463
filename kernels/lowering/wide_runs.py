"""Exact reductions of runs of integers of several words of 64 bits, in NumPy: for decimals beyond int64 that make many
values, of which `kernels.lowering.long_integers` cannot say to which one it belongs."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.ops import Extreme, Op, Result, Terms

Words = NDArray[np.int64]
"""Integers in two's complement, shape (words, integers), the lowest word first."""

Index = NDArray[np.int64]

_HALF = np.uint64((1 << 32) - 1)
_LOWEST = np.int64(-(1 << 63))


def reduce_all_runs(op: Op, words: Words, bounds: Index) -> list[int | None]:
    """The values of `reduce_runs`, where some runs may have no integers. Such a run gets the op's value of no integers,
    or None where the op has no such value."""
    held: NDArray[np.bool_] = np.repeat(np.diff(bounds) > 0, op.listed or 1)
    values: list[int | None] = [None if op.empty is None else int(op.empty)] * held.size
    if held.any():
        reduced = reduce_runs(op, words, np.append(bounds[:-1][np.diff(bounds) > 0], bounds[-1]))
        for run, value in zip(np.flatnonzero(held).tolist(), reduced, strict=True):
            values[run] = value
    return values


def reduce_runs(op: Op, words: Words, bounds: Index) -> list[int] | list[int | None]:
    """The value of `op`, which is a sum or an extreme, of magnitudes or not, the place of an extreme, an element beside
    a quantile, those that an op picks, the most frequent one, or how many are different, of each run:
    integers bounds[r] … bounds[r + 1] − 1, of which there are some. The value of a mean is its sum."""
    words, bounds = words[:, bounds[0] : bounds[-1]], bounds - bounds[0]
    if op.selects:
        return _ranked(op, words, bounds)
    if op.picks:
        return _picked(op, words, bounds)
    if op.keeps:
        return _modes(words, bounds) if op.chooses else _distinct(words, bounds)
    if op.magnitudes:
        words = _magnitudes(words)
    if op.terms is Terms.VALUES:
        return _sums(words, bounds)
    reduced, is_extreme = _extremes(words, bounds, least=op.extreme is Extreme.LEAST)
    if not op.places:
        return reduced
    places = np.where(is_extreme, np.arange(is_extreme.size), is_extreme.size)
    return [int(place) for place in np.minimum.reduceat(places, bounds[:-1]) - bounds[:-1]]


def _sums(words: Words, bounds: Index) -> list[int]:
    totals = [0] * (bounds.size - 1)
    for place, word in enumerate(words):
        unsigned, highest = word.view(np.uint64), place == len(words) - 1
        # Sums of halves fit 64 bits.
        low = np.add.reduceat((unsigned & _HALF).view(np.int64), bounds[:-1])
        half = word >> 32 if highest else (unsigned >> np.uint64(32)).view(np.int64)
        high = np.add.reduceat(half, bounds[:-1])
        for run, (below, above) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            totals[run] += (below + (above << 32)) << (64 * place)
    return totals


def _ranked(op: Op, words: Words, bounds: Index) -> list[int]:
    """The elements of each run in the ranks that `op` looks for."""
    ranks = Ranks(op, np.diff(bounds))
    at = _order(words, bounds)[bounds[:-1, None] + ranks.sorted[ranks.which]]
    return [int(value) for value in ranks.side(0, _whole(words, at))]


def _whole(words: Words, at: Index) -> NDArray[np.object_]:
    """The integers at these places, as Python has them."""
    whole = words[-1][at].astype(object)
    for word in words[-2::-1]:
        whole = (whole << 64) + word.view(np.uint64)[at].astype(object)
    return np.asarray(whole)


def _picked(op: Op, words: Words, bounds: Index) -> list[int | None]:
    """The integers of each run that `op` picks, or their places in it; None beyond its last one."""
    lengths = np.diff(bounds)
    order = np.arange(words.shape[1])
    if op.extreme is not None:
        order = _order(~words if op.extreme is Extreme.MOST else words, bounds)
    ranks = np.array([single.rank for single in op.singles()])
    present = ranks < lengths[:, None]
    backwards = (op.parameters.n or 0) < 0
    places = bounds[1:, None] - 1 - ranks if backwards else bounds[:-1, None] + ranks
    at = order[np.where(present, places, 0)]
    values = at - bounds[:-1, None] if op.result is Result.INDEX else _whole(words, at)
    return [int(value) if known else None for value, known in zip(values.reshape(-1), present.reshape(-1), strict=True)]


def _firsts(words: Words, bounds: Index) -> tuple[Words, NDArray[np.bool_]]:
    """The integers of each run in order, and which of them differ from the one before."""
    ordered = words[:, _order(words, bounds)]
    first = np.ones(ordered.shape[1], np.bool_)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    first[bounds[:-1]] = True
    return ordered, first


def _distinct(words: Words, bounds: Index) -> list[int]:
    """How many different integers each run has."""
    _, first = _firsts(words, bounds)
    return [int(count) for count in np.add.reduceat(first.astype(np.int64), bounds[:-1])]


def _modes(words: Words, bounds: Index) -> list[int]:
    """The most frequent integer of each run, the least of equally frequent ones."""
    ordered, first = _firsts(words, bounds)
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=first.size)
    edges = np.searchsorted(starts, bounds[:-1])
    most = np.repeat(np.maximum.reduceat(counts, edges), np.diff(edges, append=starts.size))
    best = np.minimum.reduceat(np.where(counts == most, starts, first.size), edges)
    return [int(value) for value in _whole(ordered, best)]


def _order(words: Words, bounds: Index) -> Index:
    """The order of the integers within each run."""
    runs = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
    return np.lexsort((*(word.view(np.uint64) for word in words[:-1]), words[-1], runs))


def _extremes(words: Words, bounds: Index, *, least: bool) -> tuple[list[int], NDArray[np.bool_]]:
    """The extreme of each run, and whether each integer equals that of its run."""
    pick: Callable[..., Words] = np.minimum.reduceat if least else np.maximum.reduceat
    lengths = np.diff(bounds)
    is_extreme, totals = np.ones(words.shape[1], np.bool_), [0] * lengths.size
    unpicked = np.iinfo(np.int64).max if least else np.iinfo(np.int64).min
    for place in reversed(range(len(words))):
        highest = place == len(words) - 1
        word = words[place] if highest else words[place] ^ _LOWEST  # in the order of unsigned words
        best = pick(np.where(is_extreme, word, unpicked), bounds[:-1])
        is_extreme &= word == np.repeat(best, lengths)
        for run, value in enumerate(best.tolist()):
            totals[run] += (value if highest else value + (1 << 63)) << (64 * place)
    return totals, is_extreme


def _magnitudes(words: Words) -> Words:
    """The magnitudes, with a word more: that of the lowest integer of a width does not fit it."""
    negative = words[-1] < 0
    words = np.concatenate([words, words[-1:] >> 63])
    made, carry = np.empty_like(words), negative.copy()
    for place, word in enumerate(words):
        flipped = np.where(negative, ~word, word)
        made[place] = flipped + carry
        carry &= flipped == -1
    return made
