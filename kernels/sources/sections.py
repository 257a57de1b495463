"""Sources in sections: several threads decode them at once, and readers that need the order get it."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.sources.sequential import Section, SequentialSource, Tally

AHEAD_BYTES = 3 << 26
"""The bytes of all sections that are decoded ahead: 16 threads have blocks of text enough. A larger section is decoded
array after array, when it is needed."""


class NullRefused(InvalidInput):
    """A null that may not be left out: the element at `index` of the array or column `name`."""

    def __init__(self, name: str, index: int) -> None:
        super().__init__(
            f"holds a null in {name!r}, at index {index:,}; null_policy omit leaves nulls out, but not of argmin, "
            "argmax and dot, which need every element in its place"
        )
        self.name = name
        self.index = index


def in_turn(sections: Iterator[Section], tally: Tally) -> Iterator[NDArray[Any]]:
    """The elements of all sections in order; threads decode the next ones meanwhile, in bounded memory. The error of a
    null in a section of unknown start names its index among all elements."""
    threads = usable_cores()

    def decoded(section: Section) -> list[NDArray[Any]]:
        began = working_s()
        try:
            return list(section.make())
        finally:
            tally.add(ahead_s=(working_s() - began) / threads)

    with ThreadPoolExecutor(threads, "decode") as pool:
        waiting: deque[tuple[Section, Future[list[NDArray[Any]]]]] = deque()
        oldest: tuple[Section, Future[list[NDArray[Any]]]] | None = None
        ahead, handed_out, coming = 0, 0, next(sections, None)
        try:
            while coming is not None or waiting or oldest is not None:
                while coming is not None and len(waiting) < 2 * threads and ahead + coming.nbytes <= AHEAD_BYTES:
                    waiting.append((coming, pool.submit(decoded, coming)))
                    ahead += coming.nbytes
                    coming = next(sections, None)
                if oldest is None and waiting:
                    oldest = waiting.popleft()
                    ahead -= oldest[0].nbytes
                    continue  # threads are to have work while the oldest section is waited for
                if oldest is not None:
                    section, arrays = oldest
                    reading, oldest = _read_ahead(arrays), None
                else:
                    assert coming is not None
                    section, reading, coming = coming, coming.make(), next(sections, None)
                try:
                    for array in reading:
                        yield array
                        handed_out += array.size
                except NullRefused as null:
                    raise NullRefused(null.name, null.index + (handed_out if section.start is None else 0)) from None
        finally:
            for _, arrays in waiting:
                arrays.cancel()


def sections_between(source: SequentialSource, first: int, stop: int) -> SequentialSource:
    """Sections first … stop − 1 of a source, as a source of their own whose elements count from 0."""
    assert source.sections is not None, "the source has sections"
    taken = list(islice(source.sections(), first, stop))
    begin = 0 if not taken or taken[0].start is None else taken[0].start
    own = [replace(each, start=None if each.start is None else each.start - begin) for each in taken]
    counts = [each.count for each in own if each.count is not None]
    count = sum(counts) if len(counts) == len(own) else None
    return replace(
        source,
        make=lambda: in_turn(iter(own), source.tally),  # the source stays alive, with its open file
        count=count,
        likely=source.likely if count is None else count,
        shape=None,
        sections=lambda: iter(own),
        nulls=None if source.nulls is None else partial(_nulls_between, source.nulls, first, stop),
    )


def _nulls_between(begin: Callable[[], SequentialSource], first: int, stop: int) -> SequentialSource:
    return sections_between(begin(), first, stop)


def _read_ahead(arrays: "Future[list[NDArray[Any]]]") -> Iterator[NDArray[Any]]:
    yield from arrays.result()


def checked(section: Section) -> Iterator[tuple[int, NDArray[Any]]]:
    """The arrays of a section, each with the index of its first element, which is that within the section where the
    section's own start is not known. Raises InvalidInput where it gives other than as many elements as it announced."""
    start = section.start or 0
    at = start
    for array in section.make():
        yield at, array
        at += array.size
    if section.count is not None and at - start != section.count:
        raise InvalidInput(f"{section.count:,} elements were announced, but {at - start:,} were read")
