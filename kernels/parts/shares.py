"""Groups by key on several devices at once. Each device reduces a share of the rows to a partial table, and these are
merged as those of partitions on a cluster are: sums as exact states, which are rounded once.

A share has rows that follow each other. So the order of first rows, and the rows that argmin gives, are those of all
rows, and no number of devices shows in a result.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from threading import Lock
from typing import Protocol

import numpy as np

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.driver import Backend
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.parts.grouping import even_runs
from warpfold.kernels.parts.joint_progress import JointProgress
from warpfold.kernels.parts.keyed import (
    PART_ROWS,
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedSource,
    WholeColumns,
)
from warpfold.kernels.parts.partial import PartialTable
from warpfold.kernels.parts.row_partitions import merged_rows, reduce_rows, table_of
from warpfold.kernels.source import part_of

MOST_OF_SHARE = 1 << 25
"""Rows of a share that is read in order, whose number nobody knows beforehand."""


def group_shares(
    members: Sequence[Backend], source: KeyedSource, plan: GroupPlan, progress: Progress | None = None, least: int = 1
) -> GroupTable:
    """Reduce the rows of each group by all `members`, each of which reduces one share of the rows after another.
    Generated rows go to so few members that each has `least`, and where that is one, without partial results.

    Raises what a member raises; of several errors, that of the first share that failed.
    """
    if source.whole is not None and source.whole.is_generated:
        members = members[: max(1, source.whole.key.count // least)]
        if len(members) == 1:
            return members[0].group_by(source, plan, progress)
    shares, done = shares_of(source, len(members)), JointProgress(max(1, source.likely), progress)
    reduced: dict[int, _Reduced] = {}
    failed: dict[int, Exception] = {}

    def run(device: int) -> None:
        while not failed and (share := shares.take()) is not None:
            share_progress = done.beside(share.number)
            try:
                made = _Reduced(
                    device,
                    *reduce_rows(members[device], share.source, plan, share.number, share_progress, sort=plan.sort),
                )
                done.end(share.number, made.rows)
                reduced[share.number] = made
            except Exception as error:
                failed[share.number] = error
            finally:
                shares.end(share)

    with ThreadPoolExecutor(len(members), "share") as pool:
        list(pool.map(run, range(len(members))))
    if failed:
        raise failed[min(failed)]
    return _together([reduced[number] for number in sorted(reduced)], plan)


# Shares


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that follow each other; its parts count them from 0."""

    number: int
    source: KeyedSource


class Shares(Protocol):
    """The shares of some rows, in the order of these rows. Any thread may take the next."""

    def take(self) -> Share | None:
        """The next share, or None where all are taken. There is at least one, which may have no rows."""
        ...

    def end(self, share: Share) -> None:
        """Note that a share was reduced, or that this failed."""
        ...


def shares_of(source: KeyedSource, devices: int) -> Shares:
    """The shares of the rows of `source` for so many devices."""
    if source.whole is not None:
        runs = even_runs(source.whole.key.count, devices)
        return _Listed([_between(source, source.whole, *each) for each in runs])
    if source.decodes:
        each = -(-source.likely // devices) if source.likely else MOST_OF_SHARE
        return _Streamed(source, min(max(each, PART_ROWS), MOST_OF_SHARE))
    parts = list(source.begin())
    return _Listed([_of_parts(source, parts[start:stop]) for start, stop in even_runs(len(parts), devices)])


def _between(source: KeyedSource, whole: WholeColumns, start: int, stop: int) -> KeyedSource:
    """Rows start … stop − 1 of those that are there by position."""
    shared = WholeColumns(
        part_of(whole.key, start, stop),
        tuple(part_of(each, start, stop) for each in whole.columns),
        whole.first + start,
    )
    return replace(source, begin=shared.parts, likely=stop - start, whole=shared)


def _of_parts(source: KeyedSource, parts: Sequence[KeyedPart]) -> KeyedSource:
    """The rows of some parts."""
    first, stop = (parts[0].start, parts[-1].stop) if parts else (0, 0)
    moved = [part.moved(-first) for part in parts]
    return replace(source, begin=lambda: iter(moved), likely=stop - first, whole=None)


class _Listed:
    """Shares that are known beforehand."""

    def __init__(self, sources: Sequence[KeyedSource]) -> None:
        self._shares = iter([Share(number, source) for number, source in enumerate(sources)])
        self._lock = Lock()

    def take(self) -> Share | None:
        with self._lock:
            return next(self._shares, None)

    def end(self, share: Share) -> None:
        """Do nothing: no share waits for another."""


class _Streamed:
    """Shares of rows that come in order, of about `most` rows each. A share is taken once the share before was read."""

    def __init__(self, source: KeyedSource, most: int) -> None:
        self._source, self._most = source, most
        self._parts = source.begin()
        self._turn = Lock()  # the thread that holds it reads
        self._taken, self._reading, self._stopped = 0, -1, False

    def take(self) -> Share | None:
        self._turn.acquire()
        try:
            first = None if self._stopped else next(self._parts, None)
        except BaseException:
            self._turn.release()
            raise
        if first is None and self._taken:
            self._turn.release()
            return None
        number = self._reading = self._taken
        self._taken += 1
        rows = iter(()) if first is None else self._read(number, first)
        return Share(number, replace(self._source, begin=lambda: rows, likely=self._most))

    def _read(self, number: int, first: KeyedPart) -> Iterator[KeyedPart]:
        part: KeyedPart | None = first
        while part is not None:
            yield part.moved(-first.start)
            if part.stop - first.start >= self._most:
                break
            part = next(self._parts, None)
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if self._reading == number:
            self._reading = -1
            self._turn.release()

    def end(self, share: Share) -> None:
        if self._reading == share.number:  # it was not read to its end, so nothing behind it is wanted
            self._stopped = True
        self._pass_on(share.number)


# Shares that were reduced


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A share that a device has reduced: the description of the reduction, and the partial table."""

    device: int
    described: GroupTable
    partial: PartialTable

    @property
    def rows(self) -> int:
        return self.partial.rows


def _together(shares: Sequence[_Reduced], plan: GroupPlan) -> GroupTable:
    """The table of all shares, which come in their order. Times are those of the device that took longest, and of
    merging."""
    began = working_s()
    merged = merged_rows(plan)
    for each in shares:
        merged.add(each.partial)
    before = np.cumsum([0, *(each.rows for each in shares)])[:-1]
    table = table_of(merged, plan, before.tolist())
    merged_s = working_s() - began

    def longest(seconds: Callable[[GroupTable], float | None]) -> float | None:
        sums: dict[int, float] = {}
        for each in shares:
            taken = seconds(each.described)
            if taken is not None:
                sums[each.device] = sums.get(each.device, 0.0) + taken
        return max(sums.values(), default=None)

    def of_stage(name: str) -> float | None:
        return longest(lambda table: None if table.stages is None else getattr(table.stages, name))

    stages = Stages(**{field.name: of_stage(field.name) for field in fields(Stages)})
    kernels = dict.fromkeys(each.described.kernel for each in shares if each.described.kernel)
    return replace(
        table,
        load_ms=longest(lambda table: table.load_ms) or 0.0,
        kernel_ms=(longest(lambda table: table.kernel_ms) or 0.0) + merged_s * 1e3,
        prepare_ms=longest(lambda table: table.prepare_ms) or 0.0,
        stages=replace(stages, reduce_s=(stages.reduce_s or 0.0) + merged_s),
        kernel=", ".join(kernels) or None,
    )
