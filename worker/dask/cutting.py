"""Cuts the elements or rows of a job into partitions. Generated elements, and those that are read by position, are cut
by index; many files are cut by file; and files that a library decodes are cut by their sections, such as row groups."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

from warpfold.contract.folders import Folders
from warpfold.contract.groupings import check_results
from warpfold.contract.keyed import open_rows
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.partitions import MOST_PARTITIONS
from warpfold.contract.sources import Source
from warpfold.contract.sources.chaining import called
from warpfold.contract.sources.dataset import UploadedFile
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.keys import GivenKeys
from warpfold.contract.sources.values import ValuesSource
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.reducing import refuse_meaning
from warpfold.kernels.parts.array_parts import ArrayPart, cut_array
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, even_runs
from warpfold.kernels.parts.rolling import Rolling
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.kernels.sources.sequential import Elements, SequentialSource, likely_count, shape_of
from warpfold.worker.dask.task import Partition

PARTITION_BYTES = 1 << 27
"""About what the elements of a partition take in memory where the request does not say how many there are: a CPU reads
and reduces them in a tenth of a second, beside which Dask's milliseconds for a task are little."""

A_WORKER = 4
"""A worker gets at least as many partitions, if there is enough to do, so that all end at about the same time."""

_BUSY = 50
"""So many workers with partitions of PARTITION_BYTES ask for 500 partitions a second, about what a scheduler hands out.
Partitions are larger where there are more workers."""

_LEAST_BYTES = 1 << 24
"""No partition is made smaller than this for the sake of `A_WORKER`."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The partitions of all elements, in their order. An array that is reduced to many values has its shape, too, or
    None where only reading tells the shape."""

    partitions: Sequence[Partition]
    shape: tuple[int, ...] | None = None


def cut(spec: ReduceSpec, folders: Folders, workers: int) -> Cut:
    """The partitions for a cluster of so many workers. The sources are opened for that. Raises InvalidInput and
    Unavailable."""
    op, grouping = spec.row(), spec.grouping()
    named = [source.in_place() if spec.in_place() else source for _, source in spec.sources()]
    opened = [source.open(folders) for source in named]
    for source in opened:
        refuse_meaning(source, "a Dask cluster", "backend")
    nbytes = sum(map(_nbytes, opened))
    number = spec.partitions or _number(nbytes, workers)
    if any(isinstance(source, ValuesSource) for source in named):
        number = 1  # because each partition sends all values
    in_order = any(isinstance(source, SequentialSource) for source in opened)
    if len(opened) > 1 and in_order and grouping is None:
        raise InvalidInput(
            f"{op.name} on a Dask cluster needs two sources that are read by position, and one is decoded in order; "
            "give the backend cpu, cuda or auto",
            "backend",
        )
    if len(opened) > 1 and not in_order and len({source.count for source in opened}) > 1:
        lengths = " and ".join(f"{source.count:,}" for source in opened)
        raise InvalidInput(f"{op.name} needs two sources of one length, not {lengths} elements", "other")
    if grouping is not None:
        assert not isinstance(grouping, Rolling), "specs refuse windows on a cluster"
        return _of_array(tuple(named), opened, grouping, folders, number, nbytes)
    if isinstance(opened[0], SequentialSource):
        return Cut(list(_in_order(named[0], opened[0], folders, number, nbytes)))
    return Cut(list(_by_position(tuple(named), opened, folders, number, nbytes)))


def _of_array(  # noqa: PLR0917
    named: tuple[Source, ...],
    opened: Sequence[Elements],
    grouping: Grouping,
    folders: Folders,
    number: int,
    nbytes: int,
) -> Cut:
    shapes = [source.known_shape or shape_of(elements) for source, elements in zip(named, opened, strict=True)]
    shape = shapes[0]
    if len(shapes) > 1 and isinstance(grouping, AlongAxes) and None not in shapes and shapes[0] != shapes[1]:
        raise InvalidInput(f"two sources of one shape are needed, not {shapes[0]} and {shapes[1]}", "other")
    if shape is not None:
        check_results(grouping, shape)
    if shape is None or any(isinstance(source, SequentialSource) for source in opened):
        part = ArrayPart((), grouping, None, None)
        return Cut([Partition(0, " and ".join(source.identity() for source in named), named, nbytes, part=part)], shape)
    count = prod(shape)
    in_memory = all(isinstance(source, ArraySource) for source in opened)
    each = nbytes // max(1, count)
    parts = list(cut_array(shape, grouping, number, each, in_memory=in_memory))
    chained = opened[0] if len(named) == 1 and isinstance(opened[0], ChainedSource) and count else None
    files = named[0] if chained is not None and isinstance(named[0], FilesSource) else None
    names = list(files.named(folders)) if files is not None else []
    partitions = []
    for at, whole in enumerate(parts):
        part = whole
        sources, where = named, "all elements"
        if part.start is not None and part.stop is not None:
            where = f"elements {part.start:,} to {part.stop - 1:,}"
            if files is not None and chained is not None:
                first, last, before = _links(chained.ends, part.start, part.stop)
                sources, where = (
                    (_of_files(files, first, last + 1, names),),
                    f"{where}, in {_listed(names[first : last + 1])}",
                )
                part = replace(part, start=part.start - before, stop=part.stop - before)
        elif part.panel is not None:
            axis = next(at for at, length in enumerate(part.panel.lengths) if length < shape[at])
            start = part.panel.origin[axis]
            where = f"indices {start:,} to {start + part.panel.lengths[axis] - 1:,} on axis {axis}"
        partitions.append(Partition(at, where, sources, each * prod(part.shape), part=part))
    return Cut(partitions, shape)


def cut_rows(spec: GroupbySpec, folders: Folders, workers: int) -> Sequence[Partition]:
    """The partitions of a group-by: a table in files by file, one in row groups by these, and arrays that are read by
    position by row. Raises InvalidInput and Unavailable."""
    source = spec.source
    if source is None:
        return _side_by_side(spec, folders, workers)
    frame, width = source.open_table(folders), 8 * len(spec.aggregations)
    nbytes = frame.likely * width
    number = spec.partitions or _number(nbytes, workers)
    if isinstance(source, FilesSource):
        names = list(source.named(folders))
        cuts = [(first, stop, names[first:stop]) for first, stop in even_runs(len(names), number)]
        return [
            Partition(
                at, f"files {_listed(some)}", (_of_files(source, first, stop, names),), nbytes * len(some) // len(names)
            )
            for at, (first, stop, some) in enumerate(cuts)
        ]
    if not frame.groups:
        return [Partition(0, source.identity(), (source,), nbytes)]
    return [
        Partition(
            at,
            f"row groups {first} to {stop - 1} of {source.identity()}",
            (source,),
            width * sum(frame.groups[first:stop]),
            first,
            stop,
        )
        for at, (first, stop) in enumerate(even_runs(len(frame.groups), number))
    ]


def _side_by_side(spec: GroupbySpec, folders: Folders, workers: int) -> Sequence[Partition]:
    sources = [source for _, source in spec.sources()]
    # Each partition sends their values.
    travels = any(isinstance(source, ValuesSource | GivenKeys) for source in sources)
    opened = [] if travels else [source.in_place().open(folders) for source in sources]
    if travels or any(isinstance(elements, SequentialSource) for elements in opened):
        return [Partition(0, "all rows", (), sum(map(_nbytes, opened)))]
    rows = open_rows(spec, folders)  # all sources have one length
    width = sum(dtype.itemsize for dtype in rows.dtypes)
    number = spec.partitions or _number(sum(map(_nbytes, opened)), workers)
    return [
        Partition(at, f"rows {start:,} to {stop - 1:,}", (), width * (stop - start), start, stop)
        for at, (start, stop) in enumerate(even_runs(rows.likely, number))
    ]


def _nbytes(source: Elements) -> int:
    return likely_count(source) * source.dtype.itemsize


def _number(nbytes: int, workers: int) -> int:
    size = PARTITION_BYTES * max(_BUSY, workers) // _BUSY
    wanted = max(-(-nbytes // size), min(A_WORKER * workers, nbytes // _LEAST_BYTES))
    return max(1, min(wanted, MOST_PARTITIONS))


def _by_position(
    named: tuple[Source, ...], opened: Sequence[Elements], folders: Folders, number: int, nbytes: int
) -> Iterator[Partition]:
    count = opened[0].count or 0
    bounds = even_runs(count, number)
    names = list(named[0].named(folders)) if isinstance(named[0], FilesSource) else []
    each = nbytes // max(1, count)
    for at, (start, stop) in enumerate(bounds):
        sources, begin, where = named, start, f"elements {start:,} to {stop - 1:,}"
        if len(named) == 1 and isinstance(named[0], FilesSource) and isinstance(opened[0], ChainedSource) and count:
            first, last, before = _links(opened[0].ends, start, stop)
            sources, begin = (_of_files(named[0], first, last + 1, names),), start - before
            where = f"{where}, in {_listed(names[first : last + 1])}"
        yield Partition(at, where, sources, (stop - start) * each, begin, begin + stop - start)


def _links(ends: Sequence[int], start: int, stop: int) -> tuple[int, int, int]:
    """The first and the last link with elements start … stop − 1, and how many elements lie before the first link."""
    first = bisect_right(ends, start)
    last = max(first, bisect_right(ends, stop - 1)) if stop > start else first
    return min(first, len(ends) - 1), min(last, len(ends) - 1), ends[first - 1] if first else 0


def _in_order(
    named: Source, opened: SequentialSource, folders: Folders, number: int, nbytes: int
) -> Iterator[Partition]:
    if isinstance(named, FilesSource):
        names = list(named.named(folders))
        for at, (first, stop) in enumerate(even_runs(len(names), number)):
            part = nbytes * (stop - first) // len(names)
            yield Partition(at, f"files {_listed(names[first:stop])}", (_of_files(named, first, stop, names),), part)
        return
    sections = [] if opened.sections is None else list(opened.sections())
    if not sections:
        yield Partition(0, named.identity(), (named,), nbytes)
        return
    ends = list(accumulate(section.nbytes for section in sections))
    # A section belongs to the part of the whole in which its middle lies.
    parts = [
        (2 * end - section.nbytes) * number // (2 * ends[-1] + 1) for end, section in zip(ends, sections, strict=True)
    ]
    cuts = [0, *(at for at in range(1, len(parts)) if parts[at] != parts[at - 1]), len(parts)]
    for at, (first, stop) in enumerate(pairwise(cuts)):
        size = sum(section.nbytes for section in sections[first:stop])
        where = f"sections {first} to {stop - 1} of {named.identity()}"
        yield Partition(at, where, (named,), size, first, stop)


def _of_files(named: FilesSource, first: int, stop: int, names: Sequence[str | UploadedFile]) -> FilesSource:
    some = names[first:stop]
    paths = tuple(name for name in some if isinstance(name, str))
    uploads = tuple(name for name in some if not isinstance(name, str))
    return named.model_copy(update={"paths": paths, "uploads": uploads, "glob": None})


def _listed(names: Sequence[str | UploadedFile]) -> str:
    shown = ", ".join(map(called, names[:2]))
    return shown + (f" and {len(names) - 2} more" if len(names) > 2 else "")
