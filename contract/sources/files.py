"""Many files as one array: files on the server, objects of places, and uploads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from warpfold.contract.fields import Listed
from warpfold.contract.folders import Folders
from warpfold.contract.sources.chaining import Reader, label_of, one_array, one_table
from warpfold.contract.sources.dataset import UploadedFile
from warpfold.contract.sources.options import AnyOptions, faults_of, files_named
from warpfold.contract.sources.roots import PathName, check_name, matching
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame
from warpfold.kernels.places.place import NOWHERE, Places, is_url
from warpfold.kernels.places.remote import Session
from warpfold.kernels.places.tree import matching as matching_objects
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements

MOST_LISTED = 10_000
MOST_MATCHED = 100_000
_MOST_SHOWN = 3


class FilesSource(AnyOptions, SourceSpec):
    """Many files that are read as one array: paths on the server and uploads, or all files that match a pattern, sorted
    by name.

    All files have one dtype. The options are those of a single file, and hold for each of them. The exact value does
    not depend on the order of the files; ops that count places, such as `argmin` and `first`, take the paths in their
    order and then the uploads in theirs.
    """

    type: Literal["files"]
    paths: Listed[PathName] = Field((), max_length=MOST_LISTED, description="Paths of the files, in their order.")
    uploads: Listed[UploadedFile] = Field(
        (),
        max_length=MOST_LISTED,
        exclude_if=lambda uploads: not uploads,
        description="Uploaded files in their order, which come after the paths.",
    )
    glob: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")] | None = Field(
        None,
        description="A pattern that the files' paths match: `*` and `?` stand for letters within a name, `[ab]` for "
        f"one of several, and `**` for any folders. It may match {MOST_MATCHED:,} files.",
    )

    @model_validator(mode="after")
    def _names_files(self) -> Self:
        if bool(self.paths or self.uploads) == (self.glob is not None):
            raise InvalidInput("needs paths or uploads, or a glob, and not both", "source.paths")
        return self

    @property
    def dataset_ids(self) -> Mapping[str, str]:
        return {upload.id: f"uploads.{index}.id" for index, upload in reversed(list(enumerate(self.uploads)))}

    def identity(self) -> str:
        if self.glob is not None:
            return f"the files {self.glob}{self.described()}"
        return f"{self._listed([*self.paths, *(f'the dataset {upload.id}' for upload in self.uploads)])}"

    @property
    def called(self) -> str:
        return self.identity() if self.glob is not None else self._listed([*self.paths, *map(label_of, self.uploads)])

    def _listed(self, names: Sequence[str]) -> str:
        if len(names) == 1:
            return f"{names[0]}{self.described()}"
        shown = ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")
        return f"{len(names):,} files ({shown}){self.described()}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        match stored:
            case {"glob": str(pattern)}:
                return f"files {pattern}"
            case {"paths": [first, *rest]}:
                more = len(rest) + len(stored.get("uploads", ()))
                return f"files {first}" + (f" and {more:,} more" if more else "")
            case {"uploads": [{"id": str(first), **about}, *rest]}:
                return f"files {about.get('name') or first[:12]}" + (f" and {len(rest):,} more" if rest else "")
        return None

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        if self.glob is not None:
            check_name(self.glob, f"{field}.glob", roots, places, pattern=True)
        for index, path in enumerate(self.paths):
            check_name(path, f"{field}.paths.{index}", roots, places)

    def named(self, folders: Folders, session: Session | None = None) -> Sequence[str | UploadedFile]:
        """The files in their order. Raises InvalidInput and Unavailable."""
        if self.glob is None:
            return [*self.paths, *self.uploads]
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
        paths = self.paths if self.glob is None else [name for name in self.named(folders) if isinstance(name, str)]
        return [*files_named(paths, folders, "source.paths"), *(upload.local(folders) for upload in self.uploads)]

    def open(self, folders: Folders) -> Elements:
        reader = Reader(self, folders, Session(folders.places), self._field)
        return one_array(self.named(folders, reader.session), reader)

    def open_table(self, folders: Folders) -> Frame:
        reader = Reader(self, folders, Session(folders.places), self._field)
        return one_table(self.named(folders, reader.session), reader)

    @property
    def _field(self) -> str:
        """The field that names the files."""
        return "source.glob" if self.glob is not None else "source.paths" if self.paths else "source.uploads"
