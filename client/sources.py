"""Sources of specs: what is here is uploaded, unless it is small, and what the service reads is named."""

import glob
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from warpfold.client import uploads
from warpfold.client.array_files import ArrayAsFile, AsFile
from warpfold.client.contents import ArrayContent, BytesContent, Sendable
from warpfold.client.exchange import Steps
from warpfold.client.later import Later
from warpfold.client.sending import in_turn
from warpfold.client.uploads import EarlyJob
from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.signature import is_text
from warpfold.kernels.places.place import is_url

if TYPE_CHECKING:
    from warpfold.client import arrays, as_files
else:
    arrays, as_files = Later("warpfold.client.arrays"), Later("warpfold.client.as_files")

MOST_VALUES = 10_000
"""Elements up to which an array travels in the request itself."""

_MOST_NAME = 1024


@dataclass(frozen=True, slots=True)
class Listed:
    """Elements as a request carries them, the name of their dtype, their shape, and what errors call them."""

    values: Sequence[Any]
    dtype: str
    shape: tuple[int, ...]
    called: str = "the array"

    @classmethod
    def of(cls, values: Sequence[Any], dtype: str, shape: tuple[int, ...], called: str = "the array") -> Self:
        """Numbers of Python. A float that is not finite is given by its name; JSON of Python gives every other element
        exactly."""
        named = (str(each) if isinstance(each, float) and not math.isfinite(each) else each for each in values)
        return cls([*named], dtype, shape, called)

    def source(self, *, shaped: bool) -> dict[str, Any]:
        """The source of a spec, which says the shape of several dimensions if the array keeps it."""
        shape = {"shape": list(self.shape)} if shaped and len(self.shape) > 1 else {}
        return {"type": "values", "values": list(self.values), "dtype": self.dtype, **shape}


@dataclass(frozen=True, slots=True)
class ManyFiles:
    """Files that are reduced as one array: files of this machine as Paths; URLs, and paths of files on the server, as
    strings. Where a file goes up as another one, such as an archive of a folder, `names` has what it is called."""

    files: Sequence[Path | str]
    names: Sequence[str] = ()

    @classmethod
    def among(cls, data: object) -> Self | None:
        """The files of a list that has files alone; None of anything else."""
        if not isinstance(data, list | tuple) or not data or not all(isinstance(file, Path | str) for file in data):
            return None
        return cls(data)

    @property
    def here(self) -> Sequence[Path]:
        """The files of this machine."""
        return [file for file in self.files if isinstance(file, Path)]

    @property
    def called(self) -> Sequence[str]:
        """What the files of this machine are called."""
        names = self.names or [*map(str, self.files)]
        return [name for name, file in zip(names, self.files, strict=True) if isinstance(file, Path)]

    def of_uploads(self, ids: Sequence[str]) -> dict[str, Any]:
        """The source of a spec, of which the files of this machine have these ids. Raises InvalidInput for a pattern
        among other files."""
        remote = [file for file in self.files if isinstance(file, str)]
        if any(map(glob.has_magic, remote)):
            if len(self.files) > 1:
                raise InvalidInput(
                    "a pattern of files on the server, or of URLs, is one array by itself: name it alone"
                )
            return {"type": "files", "glob": remote[0]}
        uploaded = [{"id": dataset, "name": name[-_MOST_NAME:]} for dataset, name in zip(ids, self.called, strict=True)]
        if len(self.files) == len(uploaded) == 1:
            return {"type": "dataset", **uploaded[0]}
        return {"type": "files"} | ({"paths": remote} if remote else {}) | ({"uploads": uploaded} if uploaded else {})


def is_file(data: object) -> bool:
    """Whether data is a file: one of this machine, as a Path, what goes up as one, a URL that the service reads, or
    several of these; or is listed already."""
    return isinstance(data, Path | AsFile | ManyFiles | Listed) or (isinstance(data, str) and is_url(data))


def as_file(data: Any, dtype: str | None = None) -> Any:
    """`data` as what goes up as a file, if that is one or `as_files.as_file` makes one of it; else `data` itself. What
    reads arrays is imported for arrays alone."""
    return data if is_file(data) else as_files.as_file(data, dtype)


def source(
    data: object,
    dtype: str | None = None,
    *,
    rehash: bool = False,
    shaped: bool = False,
    early: EarlyJob | None = None,
) -> Steps[dict[str, Any]]:
    """The `source` of a spec for an array or, given as a Path, for a file, uploaded unless it is small; or for what a
    URL names, which the service reads itself. With `shaped` an array keeps its shape. Of text `dtype` is the one as
    which the column is read."""
    if isinstance(data, str) and is_url(data):
        typed = {} if dtype is None else {"dtype": dtype}
        alone = {"type": "array", "path": data} if shaped and not glob.has_magic(data) else None
        return {**(alone or ManyFiles([data]).of_uploads(())), **typed}
    if isinstance(data, Path):
        typed = {"dtype": dtype} if is_text(data.name) and dtype is not None else {}
        early = early if uploads.begins_as_npy(data) else None
        sent = yield from _sent(data, None if typed else dtype, rehash=rehash, early=early)
        return {"type": "dataset", "id": sent, "name": data.name[-_MOST_NAME:], **typed}
    if isinstance(data, ManyFiles):
        return (yield from _of_many(data, dtype, rehash=rehash))
    held = as_file(data, dtype)
    if isinstance(held, AsFile):
        return (yield from _of_file(held, shaped=shaped))
    if isinstance(held, Listed):
        return held.source(shaped=shaped)
    return (yield from _of_array(held, dtype, shaped=shaped, early=early))


def _of_array(data: object, dtype: str | None, *, shaped: bool, early: EarlyJob | None) -> Steps[dict[str, Any]]:
    array = arrays.as_numpy(data, dtype)
    if array.size > MOST_VALUES:
        kept = yield from uploads.upload(ArrayContent(array, shaped and array.ndim > 1), "", early)
        return {"type": "dataset", "id": kept.id}
    return Listed.of(arrays.plain(array), dtype_of(array.dtype).name, array.shape).source(shaped=shaped)


def _of_many(data: ManyFiles, dtype: str | None, *, rehash: bool) -> Steps[dict[str, Any]]:
    data.of_uploads([""] * len(data.here))  # a wrong list is refused before a file is sent
    typed = {"dtype": dtype} if dtype is not None and all(is_text(str(file)) for file in data.files) else {}
    ids = yield from in_turn(
        [
            (name, path.stat().st_size, _sent(path, None if typed else dtype, rehash=rehash))
            for name, path in zip(data.called, data.here, strict=True)
        ]
    )
    return {**data.of_uploads(ids), **typed}


def _sent(path: Path, dtype: str | None, *, rehash: bool, early: EarlyJob | None = None) -> Steps[str]:
    """Upload a file as it is; returns its id. Raises TypeError as `uploads.content_of`."""
    content = uploads.content_of(path, dtype, rehash=rehash)
    return (yield from uploads.upload(content, path.name[-128:], early)).id


def _of_file(held: AsFile, *, shaped: bool) -> Steps[dict[str, Any]]:
    """The source of an array or a column that goes up as a file, however small it is."""
    content: Sendable = (
        ArrayContent(held.array, shaped and held.array.ndim > 1)
        if isinstance(held, ArrayAsFile)
        else BytesContent(held.to_bytes())
    )
    return {"type": "dataset", "id": (yield from uploads.upload(content, "")).id}
