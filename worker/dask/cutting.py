"""How the elements of a job are cut into partitions: generated ones and those that lie in files by their index, many
files by file, and what a library decodes by its sections, such as row groups."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.partitions import MOST_PARTITIONS
from warpfold.contract.sources import Source
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.values import ValuesSource
from warpfold.kernels.decimals import refuse_decimals
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import op_named
from warpfold.kernels.sequential import Elements, SequentialSource, likely_count
from warpfold.kernels.source import ChainedSource
from warpfold.worker.dask.task import Partition

PARTITION_BYTES = 1 << 27
"""About what the elements of a partition take in memory where the request does not say how many there are: a CPU reads
and reduces them in a tenth of a second, beside which Dask's milliseconds for a task are little."""

A_WORKER = 4
"""A worker gets at least as many partitions, if there is enough to do, so that all end at about the same time."""

_LEAST_BYTES = 1 << 24
"""No partition is made smaller than this for the sake of `A_WORKER`."""


def cut(spec: ReduceSpec, folders: Folders, workers: int) -> list[Partition]:
    """The partitions of all elements, in their order, for a cluster of so many workers. The sources are opened for
    that. Raises InvalidInput and Unavailable."""
    op = op_named(spec.op)
    in_place = op.places or op.sources > 1
    named = [source.in_place() if in_place else source for _, source in spec.sources()]
    opened = [source.open(folders) for source in named]
    for source in opened:
        refuse_decimals(source, "a Dask cluster", "backend")
    nbytes = sum(likely_count(source) * source.dtype.itemsize for source in opened)
    number = spec.partitions or _number(nbytes, workers)
    if any(isinstance(source, ValuesSource) for source in named):
        number = 1  # all values travel with each partition
    if len(opened) > 1 and any(isinstance(source, SequentialSource) for source in opened):
        raise InvalidInput(
            f"{op.name} on a Dask cluster needs two sources that are read by position, and one is decoded in order; "
            "give the backend cpu, cuda or auto",
            "backend",
        )
    if len(opened) > 1 and len({source.count for source in opened}) > 1:
        lengths = " and ".join(f"{source.count:,}" for source in opened)
        raise InvalidInput(f"{op.name} needs two sources of one length, not {lengths} elements", "other")
    if isinstance(opened[0], SequentialSource):
        return list(_in_order(named[0], opened[0], folders, number, nbytes))
    return list(_by_position(tuple(named), opened, folders, number, nbytes))


def _number(nbytes: int, workers: int) -> int:
    wanted = max(-(-nbytes // PARTITION_BYTES), min(A_WORKER * workers, nbytes // _LEAST_BYTES))
    return max(1, min(wanted, MOST_PARTITIONS))


def _by_position(
    named: tuple[Source, ...], opened: Sequence[Elements], folders: Folders, number: int, nbytes: int
) -> Iterator[Partition]:
    count = opened[0].count or 0
    bounds = _even(count, number)
    names = list(named[0].names(folders)) if isinstance(named[0], FilesSource) else []
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
        names = list(named.names(folders))
        for at, (first, stop) in enumerate(_even(len(names), number)):
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


def _even(count: int, number: int) -> list[tuple[int, int]]:
    """`count` cut into `number` runs that differ by one at most, into fewer where there are not so many; at least one,
    which may be empty."""
    number = max(1, min(number, count))
    bounds = [count * at // number for at in range(number + 1)]
    return list(pairwise(bounds))


def _of_files(named: FilesSource, first: int, stop: int, names: Sequence[str]) -> FilesSource:
    return named.model_copy(update={"paths": tuple(names[first:stop]), "glob": None})


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:2])
    return shown + (f" and {len(names) - 2} more" if len(names) > 2 else "")
