"""Reductions to many values of arrays that fit no device as a whole, or that several devices share: every device
reduces blocks of whole values, and a value that is too long for a device goes through it piece by piece.

Each value is rounded once, by the device that has all of its elements, so that neither blocks nor devices show in the
bits.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from itertools import chain
from math import prod
from operator import add
from queue import SimpleQueue
from typing import Any

import numpy as np

from warpfold.kernels.backend import GroupedReduction, Progress, Reduction
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput, NoElements
from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import SUMS_OF_MOMENTS, NanPolicy, Terms, Value, op_named, terms_of
from warpfold.kernels.parts.blocks import Block, blocks
from warpfold.kernels.parts.grouping import Grouping, Segments
from warpfold.kernels.parts.joint_progress import JointProgress
from warpfold.kernels.query import Shaped, Whole
from warpfold.kernels.source import Source, extents_of, part_of
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered


def fitting(
    sources: Sequence[Source], shape: tuple[int, ...], grouping: Grouping, most: int, parts: int = 1
) -> Iterator[Block]:
    """Blocks of whole values with at most `most` elements each, in the order of the values, and where there are as many
    values at least `parts` of them. A longer value is a block of its own. What cannot be cut, because it neither is an
    array nor lies in one piece, is a block, however large."""
    values = prod(grouping.result_shape(shape))
    if isinstance(grouping, Segments):
        yield from _segments(sources, grouping, prod(shape), min(most, -(-prod(shape) // parts)))
        return
    each = prod(shape[axis] for axis in grouping.reduced(len(shape)))
    at_a_time = max(1, min(most // max(1, each), -(-values // parts)))
    yield from blocks(sources, shape, grouping, at_a_time, strips=False)


def _segments(sources: Sequence[Source], grouping: Segments, count: int, most: int) -> Iterator[Block]:
    bounds = grouping.bounds(count)
    first = 0
    if bounds.size < 2:  # no segments of no elements
        yield Block(tuple(sources), (count,), grouping, 0)
    while first < bounds.size - 1:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + most, "right")) - 1)
        start, stop = int(bounds[first]), int(bounds[last])
        offsets = None if grouping.offsets is None else tuple((bounds[first : last + 1] - start).tolist())
        parts = tuple(part_of(source, start, stop) for source in sources)
        yield Block(parts, (stop - start,), Segments(offsets, grouping.length), last - first)
        first = last


def reduce_spread(
    members: Sequence[Backend], query: Shaped, most: int, progress: Progress | None = None
) -> GroupedReduction:
    """The answer to `query` by all `members` at once, each of which holds at most `most` elements.

    One of them reduces an array that lies in one piece, fits it, and would lie in runs if it was shared: a device reads
    all of it sooner than several read runs.

    Raises what a member raises; of several errors, that of the first block. A NaN that is refused is not named by its
    index, because blocks count their elements from 0.
    """
    shape, grouping = query.shape, query.grouping
    whole = [gathered(source) if isinstance(source, SequentialSource) else source for source in query.sources]
    made = list(fitting(whole, shape, grouping, most, len(members)))
    if prod(shape) <= most and _lie(whole) and not all(_lie(block.sources) for block in made):
        members = members[:1]
        made = list(fitting(whole, shape, grouping, most))
    free: SimpleQueue[Backend] = SimpleQueue()
    for member in members:
        free.put(member)
    done = JointProgress(prod(shape), progress)

    def run(block: Block) -> GroupedReduction:
        member = free.get()
        try:
            return _block(member, block, query, most, done.beside(id(member)))
        except InvalidInput as error:
            if error.field == "nan_policy" and len(made) > 1:
                raise InvalidInput("an element is NaN, and nan_policy is raise", "nan_policy") from None
            raise
        finally:
            done.end(id(member), prod(block.shape))
            free.put(member)

    if len(members) == 1:
        reduced = [run(block) for block in made]
    else:
        with ThreadPoolExecutor(len(members)) as pool:
            waiting = [pool.submit(run, block) for block in made]
            try:
                reduced = [each.result() for each in waiting]
            except BaseException:
                for each in waiting:
                    each.cancel()
                raise
    return replace(together(reduced), shape=query.op.shape_of(grouping.result_shape(shape)))


def _lie(sources: Sequence[Elements]) -> bool:
    """Whether the elements of each source lie one after another, in files or in memory."""
    return all(extents_of(source) for source in sources)


def _block(member: Backend, block: Block, query: Shaped, most: int, progress: Progress | None) -> GroupedReduction:
    source, *rest = block.sources
    other = rest[0] if rest else None
    if block.values > 1 or prod(block.shape) <= most or query.op.ranks:  # which a device takes in pieces, all at once
        asked = replace(query, source=source, other=other, shape=block.shape, grouping=block.grouping)
        return member.aggregate(asked, progress)
    single = Whole(source=source, op=query.op, other=other, nan_policy=query.nan_policy, ddof=query.ddof)
    singles = query.op.singles()
    try:
        made = [member.aggregate(replace(single, op=op), progress) for op in singles]
        value, values = made[-1], tuple[Value | None, ...](each.value for each in made)
    except InvalidInput as error:
        none = isinstance(error, NoElements)  # all of them are NaN and left out
        if not none and error.field != "ddof":  # or too few for a variance are not
            raise
        policy = NanPolicy.PROPAGATE if none else query.nan_policy
        counted = Whole(source=source, op=op_named("count_nonzero"), nan_policy=policy)
        value, values = member.aggregate(counted, progress), (None,) * len(singles)
        dtype = query.op.result_dtype(source.dtype)
        value = replace(value, dtype=dtype, op=query.op.name, count=0 if none else value.count)
    return GroupedReduction(
        values=values,
        shape=(1,),
        dtype=value.dtype,
        counts=(value.count,) * len(values),
        op=value.op,
        strategy=value.strategy,
        kernel="pieces",
        correctly_rounded=value.correctly_rounded,
        load_ms=value.load_ms,
        kernel_ms=value.kernel_ms,
        prepare_ms=value.prepare_ms,
        stages=value.stages,
        states=_states(member, single, value) if query.states else (),
    )


def _states(member: Backend, single: Whole, value: Reduction) -> tuple[StateColumn, ...]:
    """The exact states of a value of all elements. A variance comes without states, so its sums are made anew."""
    terms = terms_of(single.op)
    if not value.count:
        made = [ExactState.empty(each).to_bytes() for each in terms]
    elif single.op.terms is Terms.MOMENTS:
        sums = (member.aggregate(replace(single, op=op_named(name), ddof=0)).state for name in SUMS_OF_MOMENTS)
        made = [state for state in sums if state is not None]
    else:
        made = [] if value.state is None else [value.state]
    assert len(made) == len(terms), f"{single.op.name} has a state for each of {terms}"
    return tuple(StateColumn.of_bytes([state]) for state in made)


def together(parts: Sequence[GroupedReduction]) -> GroupedReduction:
    """The blocks of a reduction as one, with the shape of the first: their values, fractions and states, the sums of
    their times, and the names of all loops that ran."""
    if len(parts) == 1:
        return parts[0]
    values: Any
    counts: Any
    if all(isinstance(part.values, np.ndarray) for part in parts):
        values, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "counts"))
    else:
        values = tuple(chain.from_iterable(part.listed() for part in parts))
        counts = tuple(chain.from_iterable(part.counted() for part in parts))
    return replace(
        parts[0],
        values=values,
        counts=counts,
        kernel=", ".join(dict.fromkeys(part.kernel for part in parts)),
        load_ms=sum(part.load_ms for part in parts),
        kernel_ms=sum(part.kernel_ms for part in parts),
        prepare_ms=sum(part.prepare_ms for part in parts),
        stages=reduce(add, filter(None, (part.stages for part in parts))) if parts[0].stages else None,
        states=tuple(StateColumn.beside(columns) for columns in zip(*(part.states for part in parts), strict=True)),
        fractions=None
        if any(part.fractions is None for part in parts)
        else tuple(chain.from_iterable(part.fractions or () for part in parts)),
    )
