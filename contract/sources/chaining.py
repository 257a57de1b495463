"""The reading of many files as one array, or as one table."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Protocol

from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import AnyOptions, open_file, read_of
from warpfold.contract.sources.several import SeenFile, Stamp, one_source
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.lowering.complexes import ComplexNumbers
from warpfold.kernels.places.file import stamp_of
from warpfold.kernels.places.place import is_url
from warpfold.kernels.places.remote import IN_FLIGHT, Session
from warpfold.kernels.sources.chained import ChainedSource, Link
from warpfold.kernels.sources.sequential import Elements, FileCount, SequentialSource


class OpenFile(Protocol):
    """A file that is opened by itself: an upload, or a file of whoever reads it without a service."""

    @property
    def label(self) -> str:
        """What results call the file."""
        ...

    @property
    def called(self) -> str:
        """What errors call the file."""
        ...

    def begin(self, folders: Folders) -> BinaryIO:
        """The file, to be closed by the caller. Raises InvalidInput and OSError."""
        ...

    def elements_in(self, file: BinaryIO, options: AnyOptions) -> Elements:
        """The elements in the open file. Raises InvalidInput and Unavailable."""
        ...

    def frame_in(self, file: BinaryIO, options: AnyOptions) -> Frame:
        """The columns of the table in the open file. Raises InvalidInput and Unavailable."""
        ...


FileNamed = str | OpenFile
"""A path on the server, a URL, or a file that is opened by itself."""


def label_of(file: FileNamed) -> str:
    """The name of a file, by which a result tells it from the others."""
    return file if isinstance(file, str) else file.label


def called(file: FileNamed) -> str:
    """What errors call a file."""
    return repr(file) if isinstance(file, str) else file.called


def one_array(names: Sequence[FileNamed], reader: "Reader") -> Elements:
    """The elements of all files, one file after another. Raises InvalidInput that names the file whose elements are of
    another type than those of the first, and Unavailable."""
    files = reader.looked_at(names)
    first = files[0]
    if len(files) > 1 and isinstance(first.meaning, ComplexNumbers):
        raise InvalidInput(
            f"{first.called} holds {first.holds}: files of complex numbers are reduced one by one so far", reader.field
        )
    for file in files:
        if file.dtype is not first.dtype:
            raise InvalidInput(
                f"{file.called} holds {file.dtype.name}, and {first.called} {first.dtype.name}: files that are reduced "
                "as one array need one dtype",
                reader.field,
            )
        if file.meaning != first.meaning:
            held, held_by_first = file.holds, first.holds
            different = f"{held} and {held_by_first}" if held != held_by_first else f"{held} of different scales"
            raise InvalidInput(
                f"{file.called} and {first.called} hold {different}: files that are reduced as one array need one type",
                reader.field,
            )
    counts = [file.count for file in files if file.by_position and file.count is not None]
    if isinstance(first.meaning, ComplexNumbers):
        source: SequentialSource = first.opened()  # the source has its parts as its meaning
        return source
    if len(counts) == len(files):
        links = [Link(file.called, count, file.opened, file.label) for file, count in zip(files, counts, strict=True)]
        return ChainedSource(first.dtype, links)
    return one_source(files)


def one_table(names: Sequence[FileNamed], reader: "Reader", keys: Sequence[str] | None = None) -> Frame:
    """The columns of all files, with the types by which text has these keys. Raises InvalidInput and Unavailable; so
    does reading, which names the file that lacks a column."""
    first = reader.table(names[0], keys)
    tally, counted = first.tally, {0}  # rows may be read more than once

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        rows: list[FileCount] = []
        for number, name in enumerate(names):
            frame = reader.table(name, keys)
            if number not in counted:
                tally.objects += frame.tally.objects
                tally.dialects += frame.tally.dialects
            counted.add(number)
            for column in columns:
                kind = frame.schema.field(column).type if column in frame.schema.names else None
                if kind != first.schema.field(column).type:
                    hint = "" if first.make_keyed is None else "; `words` may name a column of text that is words"
                    raise InvalidInput(
                        f"{called(name)} holds column {column!r} as {kind or 'none'}, and {called(names[0])} as "
                        f"{first.schema.field(column).type}: files that are one table need the same columns{hint}",
                        reader.field,
                    )
            count = 0
            for batch in frame.make(columns):
                count += batch.num_rows
                yield batch
            rows.append(FileCount(label_of(name), count))
        tally.files = rows

    make_keyed = None if first.make_keyed is None else partial(one_table, names, reader)
    likely = len(names) * first.likely
    return Frame(first.schema, batches, likely, tally, make_keyed=make_keyed, why_refused=first.why_refused)


@dataclass(frozen=True, slots=True)
class Reader:
    """How each of the files is opened."""

    options: AnyOptions
    folders: Folders
    session: Session
    field: str

    def looked_at(self, names: Sequence[FileNamed]) -> list[SeenFile]:
        """The files as they are now; several objects of places are asked for at a time. Raises InvalidInput."""
        if not any(isinstance(name, str) and is_url(name) for name in names):
            keep = len(names) <= ChainedSource.MOST_OPEN
            return [self.seen(name, keep=keep) for name in names]
        with ThreadPoolExecutor(IN_FLIGHT, "look") as threads:
            try:
                return list(threads.map(self.seen, names))
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def seen(self, named: FileNamed, *, keep: bool = False) -> SeenFile:
        """A file as it is now; with `keep` it stays open, if it is read by position. Raises InvalidInput."""
        return SeenFile(label_of(named), called(named), partial(self.look, named), self.field, keep=keep)

    def table(self, named: FileNamed, keys: Sequence[str] | None = None) -> Frame:
        """The columns of the table in a file, with the types by which text has these keys. Raises InvalidInput."""

        def open_in(file: BinaryIO) -> Frame:
            if isinstance(named, str):
                frame = self.options.open_table_in(file, named)
            else:
                frame = named.frame_in(file, self.options)
            return frame if keys is None else frame.keyed(keys)

        if not isinstance(named, str):
            return read_of(named.called, self.field, partial(named.begin, self.folders), open_in)
        return open_file(named, self.folders, self.field, open_in, session=self.session)

    def look(self, named: FileNamed) -> tuple[Elements, Stamp]:
        """The elements of a file, and what tells the file from another of its name. Raises InvalidInput."""
        stamp: Stamp = ()

        def open_in(file: BinaryIO) -> Elements:
            nonlocal stamp
            stamp = stamp_of(file)
            if isinstance(named, str):
                return self.options.open_in(file, named)
            return named.elements_in(file, self.options)

        if not isinstance(named, str):
            return read_of(named.called, self.field, partial(named.begin, self.folders), open_in), stamp
        open_folder_in = self.options.open_folder_in
        return open_file(named, self.folders, self.field, open_in, open_folder_in, session=self.session), stamp
