"""Ranges of keys that hold about equally many rows each: where keys make many groups, the states of the groups of one
range stay in a second-level cache, and those of all groups do not."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.keyed.column import fold_names
from warpfold.kernels.dtypes import Kind
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.parts.keyed import GroupPlan, KeyedSource
from warpfold.kernels.source import Source

_PLACES, _RUN = 128, 64
"""The sample has _RUN neighbouring rows from each of _PLACES places, so that it shows equal keys that lie together."""

_LEAST_ROWS = 1 << 20
"""Tables of fewer rows are not sampled: that would take longer than ranges save."""

_LEAST_BYTES = 6 << 20
"""Fewer bytes of states stay in caches that are near to the threads which change them."""

_STATE_BYTES, _SQUARES_BYTES = 32, 64
"""About how many bytes a group takes for a sum, or for a sum of squares."""

_GROUPS = 1 << 15
"""Groups of a range: their states take one to three megabytes. More ranges cost more calls, and more places to which
rows are written."""

_LEAST_RANGES, _MOST_RANGES = 32, 256

_RANGES_A_THREAD = 4
"""Where each thread takes at least so many ranges, all threads end at about the same time."""

_CELLS = 1 << 12
"""Cells of equal width, of which ranges are made."""


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges 0 … count − 1, in the order of the keys: cell c, which holds the keys from least + (c << shift) on, is in
    range cells[c]."""

    least: Any
    shift: np.uint64
    cells: NDArray[np.uint8]
    count: int

    @classmethod
    def of_sample(cls, sample: NDArray[Any], count: int) -> Self:
        """`count` ranges, which hold about equally many keys of `sample` each."""
        least = sample.min()
        width = int(sample.max()) - int(least)
        shift = max(0, width.bit_length() - (_CELLS - 1).bit_length())
        places = (sample.astype(np.uint64) - least.astype(np.uint64)) >> np.uint64(shift)
        rows = np.bincount(places.astype(np.int64), minlength=1)
        before = np.cumsum(rows) - rows
        return cls(least, np.uint64(shift), (before * count // sample.size).astype(np.uint8), count)

    def share(self, sample: NDArray[Any]) -> float:
        """The largest share of the keys of `sample` that are in one range."""
        from warpfold.kernels.cpu.keyed import range_loops

        counts = np.zeros(self.count, np.int64)
        numbers = np.empty(sample.size, np.uint8)
        range_loops.number_ranges(sample, self.least, self.shift, self.cells, numbers, counts)
        return float(counts.max()) / sample.size


def ranges_for(source: KeyedSource, plan: GroupPlan) -> KeyRanges | None:
    """The ranges in which the rows of `source` are best reduced; None where that is no faster, or where `plan` needs
    the order of the rows."""
    whole = source.whole
    if whole is None or not can_be_scattered(source, plan) or whole.key.count < _LEAST_ROWS:
        return None
    sample = _sample(whole.key)
    equal = sample.size - np.unique(sample).size
    groups = sample.size**2 // (2 * max(1, equal))  # of n keys of g groups n² / 2g pairs are equal
    if groups * _state_bytes(plan) < _LEAST_BYTES:
        return None
    least = max(_LEAST_RANGES, _RANGES_A_THREAD * usable_cores())
    count = min(max(least, 1 << (groups // _GROUPS).bit_length()), _MOST_RANGES)
    ranges = KeyRanges.of_sample(sample, count)
    most = max(4 / count, 1 / (_RANGES_A_THREAD * usable_cores()))  # a range is reduced by one thread
    return ranges if ranges.share(sample) <= most else None


def can_be_scattered(source: KeyedSource, plan: GroupPlan) -> bool:
    """Whether rows may be reduced in another order than that in which they come."""
    return (
        source.whole is not None
        and source.whole.key.dtype.kind in (Kind.INT, Kind.UINT)
        and plan.sort
        and plan.nan_policy is not NanPolicy.RAISE
        and not any(asked.op.places for asked in plan.aggregations)
    )


def _state_bytes(plan: GroupPlan) -> int:
    """About how many bytes the states of a group take."""
    folds = {(asked.column, name) for asked in plan.aggregations for name in fold_names(asked.op)}
    return sum(_SQUARES_BYTES if name == "squares" else _STATE_BYTES for _, name in folds)


def _sample(key: Source) -> NDArray[Any]:
    starts = np.linspace(0, key.count - _RUN, _PLACES).astype(np.int64).tolist()
    sample = np.concatenate([key.read(start, start + _RUN) for start in starts])
    sample.flags.writeable = False
    return sample
