"""Many files on the server as one array."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self

from numpy.typing import NDArray
from pydantic import Field, StringConstraints, model_validator

from warpfold.contract.fields import Listed
from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import AnyOptions, faults_of, files_named, open_file
from warpfold.contract.sources.roots import PathName, check_name, matching
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.lowering.complexes import ComplexNumbers
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.lowering.nulls import keeps_nulls, truths_of
from warpfold.kernels.lowering.reducing import meaning_of
from warpfold.kernels.places.file import stamp_of
from warpfold.kernels.places.place import NOWHERE, Places, is_url
from warpfold.kernels.places.remote import IN_FLIGHT, Session
from warpfold.kernels.places.tree import matching as matching_objects
from warpfold.kernels.source import Source, checksums_of, unchanged
from warpfold.kernels.sources.chained import ChainedSource, Link
from warpfold.kernels.sources.checksums import verify
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements, SequentialSource, Tally, in_order, likely_count

MOST_LISTED = 10_000
MOST_MATCHED = 100_000
_MOST_SHOWN = 3
_PIECE = 1 << 17


class FilesSource(AnyOptions, SourceSpec):
    """Many files on the server, read as one array: a list of paths, or all files that match a pattern, sorted by name.

    All files have one dtype. The options are those of a single file, and hold for each of them. The exact value does
    not depend on the order of the files; `argmin` and `argmax` count elements in the order of the files.
    """

    type: Literal["files"]
    paths: Listed[PathName] = Field((), max_length=MOST_LISTED, description="Paths of the files, in their order.")
    glob: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")] | None = Field(
        None,
        description="A pattern that the files' paths match: `*` and `?` stand for letters within a name, `[ab]` for "
        f"one of several, and `**` for any folders. It may match {MOST_MATCHED:,} files.",
    )

    @model_validator(mode="after")
    def _names_files(self) -> Self:
        if bool(self.paths) == (self.glob is not None):
            raise InvalidInput("needs paths or a glob, and not both", "source.paths")
        return self

    def identity(self) -> str:
        if self.glob is not None:
            return f"the files {self.glob}{self.described()}"
        shown = ", ".join(self.paths[:_MOST_SHOWN]) + (", …" if len(self.paths) > _MOST_SHOWN else "")
        return f"{len(self.paths):,} files ({shown}){self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        match stored:
            case {"glob": str(pattern)}:
                return f"files {pattern}"
            case {"paths": [first, *rest]}:
                return f"files {first}" + (f" and {len(rest):,} more" if rest else "")
        return None

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        if self.glob is not None:
            check_name(self.glob, f"{field}.glob", roots, places, pattern=True)
        for index, path in enumerate(self.paths):
            check_name(path, f"{field}.paths.{index}", roots, places)

    def names(self, folders: Folders, session: Session | None = None) -> Sequence[str]:
        """The names of the files, in their order. Raises InvalidInput and Unavailable."""
        if self.glob is None:
            return self.paths
        field = "source.glob"
        check_name(self.glob, field, folders.roots, folders.places, pattern=True)
        if not is_url(self.glob):
            return matching(self.glob, folders.roots, field, MOST_MATCHED)
        target = folders.places.target(self.glob, field, pattern=True)
        with faults_of(repr(self.glob), field):
            return matching_objects(session or Session(folders.places), target, MOST_MATCHED)

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        if self.glob is not None and is_url(self.glob):
            return ()
        return files_named(self.names(folders), folders, "source.paths")

    def open(self, folders: Folders) -> Elements:
        reader = _Reader(self, folders, Session(folders.places))
        files = reader.looked_at(self.names(folders, reader.session))
        first = files[0]
        if len(files) > 1 and isinstance(first.meaning, ComplexNumbers):
            raise InvalidInput(
                f"{first.name!r} holds {first.holds}: files of complex numbers are reduced one by one so far",
                "source.paths" if self.glob is None else "source.glob",
            )
        for file in files:
            if file.dtype is not first.dtype:
                raise InvalidInput(
                    f"{file.name!r} holds {file.dtype.name}, and {first.name!r} {first.dtype.name}: files that are "
                    "reduced as one array need one dtype",
                    "source.paths" if self.glob is None else "source.glob",
                )
            if file.meaning != first.meaning:
                held, held_by_first = file.holds, first.holds
                different = f"{held} and {held_by_first}" if held != held_by_first else f"{held} of different scales"
                raise InvalidInput(
                    f"{file.name!r} and {first.name!r} hold {different}: files that are reduced as one array need one "
                    "type",
                    "source.paths" if self.glob is None else "source.glob",
                )
        counts = [file.count for file in files if file.by_position and file.count is not None]
        if isinstance(first.meaning, ComplexNumbers):
            source: SequentialSource = first.opened()  # the source has its parts as its meaning
            return source
        if len(counts) == len(files):
            links = [Link(repr(file.name), count, file.opened) for file, count in zip(files, counts, strict=True)]
            return ChainedSource(first.dtype, links)
        return _one_after_another(first, files)

    def open_table(self, folders: Folders) -> Frame:
        reader = _Reader(self, folders, Session(folders.places))
        return self._table(self.names(folders, reader.session), reader)

    def _table(self, names: Sequence[str], reader: "_Reader", keys: Sequence[str] | None = None) -> Frame:
        """The columns of all files, with the types by which text has these keys."""
        first = reader.table(names[0], keys)
        tally, counted = first.tally, {names[0]}  # rows may be read more than once

        def batches(columns: Sequence[str]) -> Iterator[Any]:
            for name in names:
                frame = reader.table(name, keys)
                tally.objects += frame.tally.objects if name not in counted else []
                counted.add(name)
                for column in columns:
                    kind = frame.schema.field(column).type if column in frame.schema.names else None
                    if kind != first.schema.field(column).type:
                        hint = "" if first.make_keyed is None else "; `words` may name a column of text that is words"
                        raise InvalidInput(
                            f"{name!r} holds column {column!r} as {kind or 'none'}, and {names[0]!r} as "
                            f"{first.schema.field(column).type}: files that are one table need the same columns{hint}",
                            "source.paths" if self.glob is None else "source.glob",
                        )
                yield from frame.make(columns)

        make_keyed = None if first.make_keyed is None else partial(self._table, names, reader)
        likely = len(names) * first.likely
        return Frame(first.schema, batches, likely, tally, make_keyed=make_keyed, why_refused=first.why_refused)


@dataclass(frozen=True, slots=True)
class _Reader:
    """How each of the files is opened."""

    options: AnyOptions
    folders: Folders
    session: Session

    def looked_at(self, names: Sequence[str]) -> "list[_File]":
        """The files as they are now; several objects of places are asked for at a time. Raises InvalidInput."""
        if not any(map(is_url, names)):
            keep = len(names) <= ChainedSource.MOST_OPEN
            return [_File.of(name, self, keep=keep) for name in names]
        with ThreadPoolExecutor(IN_FLIGHT, "look") as threads:
            try:
                return list(threads.map(partial(_File.of, reader=self, keep=False), names))
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def table(self, name: str, keys: Sequence[str] | None = None) -> Frame:
        """The columns of the table in a file, with the types by which text has these keys. Raises InvalidInput."""

        def open_in(file: BinaryIO) -> Frame:
            frame = self.options.open_table_in(file, name)
            return frame if keys is None else frame.keyed(keys)

        return open_file(name, self.folders, "source.paths", open_in, session=self.session)

    def look(self, name: str) -> tuple[Elements, tuple[Any, ...]]:
        """The elements of a file, and what tells the file from another of its name. Raises InvalidInput."""
        stamp: tuple[Any, ...] = ()

        def open_in(file: BinaryIO) -> Elements:
            nonlocal stamp
            stamp = stamp_of(file)
            return self.options.open_in(file, name)

        open_folder_in = self.options.open_folder_in
        return open_file(name, self.folders, "source.paths", open_in, open_folder_in, session=self.session), stamp


@dataclass(frozen=True, slots=True)
class _File:
    """One of the files, as it was when it was looked at first. One of a few stays open; it is opened again when it is
    read, if there are many or if it has changed."""

    name: str
    reader: _Reader
    dtype: DType
    count: int | None
    likely: int
    by_position: bool
    keeps_nulls: bool
    stamp: tuple[Any, ...]
    meaning: Meaning | None
    kept: Source | None

    @classmethod
    def of(cls, name: str, reader: _Reader, *, keep: bool) -> Self:
        """Look at a file. With `keep` the file stays open, if it is read by position. Raises InvalidInput."""
        source, stamp = reader.look(name)
        return cls(
            name,
            reader,
            source.dtype,
            source.count,
            likely_count(source),
            not isinstance(source, SequentialSource),
            keeps_nulls(source),
            stamp,
            meaning_of(source),
            source if keep and not isinstance(source, SequentialSource) else None,
        )

    @property
    def holds(self) -> str:
        """The elements in words."""
        return self.dtype.name if self.meaning is None else self.meaning.name

    def opened(self) -> Any:
        """The elements, by position or in order as they were. Raises InvalidInput where the file is another now."""
        if self.kept is not None and unchanged(self.kept):
            return self.kept
        source, stamp = self.reader.look(self.name)
        if stamp != self.stamp:
            raise InvalidInput(f"{self.name!r} changed while the job ran", "source.paths")
        return source


def _one_after_another(first: _File, files: Sequence[_File], *, truths: bool = False) -> SequentialSource:
    """The elements of all files; with `truths` whether each is a null."""
    tally, counted = Tally(), set[int]()  # elements may be read more than once

    def pieces() -> Iterator[NDArray[Any]]:
        for number, file in enumerate(files):
            opened = file.opened()  # the source closes the file when nobody uses it any more
            source = truths_of(opened) if truths else opened
            nulls = tally.nulls
            if isinstance(source, SequentialSource):
                source.tally.beyond, tally.null_words = tally.beyond, source.tally.null_words
                if number not in counted:
                    tally.objects += source.tally.objects
                    tally.absences += source.tally.absences
                    for absent in source.tally.absences:
                        absent.file = file.name
                counted.add(number)
            for piece in in_order(source, _PIECE):
                if isinstance(source, SequentialSource):
                    tally.nulls = nulls + source.tally.nulls
                yield piece
            verify(checksums_of(opened))
            if isinstance(source, SequentialSource):  # nulls may lie behind its last element
                tally.nulls = nulls + source.tally.nulls

    counts = [file.count for file in files]
    known = None if None in counts else sum(count for count in counts if count is not None)
    likely = sum(file.likely for file in files)
    if truths:
        return SequentialSource(DTYPES["bool"], pieces, known, likely, tally)
    kept = any(file.keeps_nulls for file in files)
    nulls = partial(_one_after_another, first, files, truths=True) if kept else None
    return SequentialSource(first.dtype, pieces, known, likely, tally, meaning=first.meaning, nulls=nulls)
