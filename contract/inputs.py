"""The files and objects that a reduction read, as its result names them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StrictBool

from warpfold.contract.dialect_view import DialectView
from warpfold.contract.frozen import Frozen
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.places.place import is_url
from warpfold.kernels.sources.inputs import Inputs, fingerprint_of, hash_of_object
from warpfold.kernels.sources.sequential import FileCount, Remote

MOST_OBJECTS = 100
"""A result names no more of the objects that it read than these, and no more of the files."""


FingerprintField = Annotated[
    StrictBool,
    Field(
        exclude_if=lambda wanted: not wanted,
        description="Whether the files and objects that are read are hashed by SHA-256, too. They are read once more "
        "for that, beside the reduction, at 1 to 2 GB/s each. The result names the hash of a dataset in any case.",
    ),
]
"""The field `fingerprint` of a spec."""


ElementsField = Annotated[
    int | None,
    Field(
        exclude_if=lambda elements: elements is None,
        description="How many elements, or rows of a group-by, were read of it, where several files are one array.",
    ),
]
NullsField = Annotated[
    int | None,
    Field(exclude_if=lambda nulls: nulls is None, description="How many of its nulls were left out."),
]


class ObjectView(Frozen):
    """An object of a place, as it was when it was read. Of a Zarr hierarchy, which is many objects, only the URL is
    known."""

    url: str
    size: int | None = Field(description="The size of the object in bytes.")
    etag: str | None = Field(description="The ETag of the object, as its server writes it.")
    modified: str | None = Field(description="When the object was last changed, as its server writes the time.")
    bytes_read: int = Field(description="How many bytes of the object were read.")
    sha256: str | None = Field(None, description="The SHA-256 of the object, where `fingerprint` asked for it.")
    elements: ElementsField = None
    nulls: NullsField = None


class FileView(Frozen):
    """A file on the machine that reduced it, as the file was when it was read. Of a folder, only the name is known."""

    name: str = Field(description="The name of the file as the request gave it, or the id of a dataset without a name.")
    size: int | None = Field(description="The size of the file in bytes.")
    modified: datetime | None = Field(
        description="When the file was last changed; null for a dataset, which never changes."
    )
    sha256: str | None = Field(
        description="The SHA-256 of the file, if `fingerprint` asked for it; a dataset has it in any case."
    )
    elements: ElementsField = None
    nulls: NullsField = None


class InputView(Frozen):
    """The files and the objects behind URLs that a reduction read."""

    count: int = Field(description="How many files and objects were read.")
    bytes_read: int = Field(
        description="The number of bytes of all objects that were read; the bytes of files do not count."
    )
    objects: tuple[ObjectView, ...] = Field(description=f"The objects in order, the first {MOST_OBJECTS}.")
    files: tuple[FileView, ...] = Field((), description=f"The files in order, the first {MOST_OBJECTS}.")
    fingerprint: str | None = Field(
        None,
        description="The SHA-256 of the input. For one file or object, it is the hash of its bytes. For several, it "
        "is the SHA-256 of the list of their hashes in hexadecimal digits, the files first, with a line feed after "
        "each hash. It is null if one of the hashes is not known.",
    )

    null_words: tuple[str, ...] | None = Field(
        None,
        description="The texts of a cell that were nulls in columns of numbers, where text was read; `null_words` of "
        "the source sets them. In columns of words only the empty cell was a null, unless the source sets others.",
    )
    dialects: tuple[DialectView, ...] = Field(
        (),
        exclude_if=lambda dialects: not dialects,
        description="How the text was read: what the request or the text itself says of delimiters, quotes, numbers, "
        f"the encoding, comments and names. Texts that are written alike are named once; the first {MOST_OBJECTS}.",
    )

    @classmethod
    def of(
        cls,
        read: Sequence[Remote],
        inputs: Inputs,
        *,
        fingerprint: bool,
        dialects: Sequence[Dialect] = (),
        counts: Sequence[FileCount] = (),
    ) -> "InputView | None":
        """The view of these inputs; None where nothing was read. The `counts` are those of all files and objects, where
        several are one array. Waits for the hashes of files, and makes those of objects. Raises InvalidInput where a
        file or an object has changed, and Unavailable."""
        if not read and not inputs.count:
            return None
        files = inputs.metadata()
        # Hashed first, because an object counts the bytes that are read for that.
        hashes = [hash_of_object(remote) if fingerprint else None for remote in read]
        objects = [replace(remote.metadata(), sha256=sha256) for remote, sha256 in zip(read, hashes, strict=True)]
        whole = len(files) == inputs.count
        of_files = [count for count in counts if not is_url(count.name)]  # files may have one name, objects do not
        here: Sequence[FileCount | None] = of_files if len(of_files) == inputs.count else [None] * inputs.count
        by_url = {count.name: count for count in counts}
        return cls(
            count=inputs.count + len(read),
            bytes_read=sum(metadata.bytes_read for metadata in objects),
            objects=tuple(
                ObjectView(**asdict(metadata), **_counted(by_url.get(metadata.url)))
                for metadata in objects[:MOST_OBJECTS]
            ),
            files=tuple(
                FileView(
                    name=file.name,
                    size=file.size,
                    modified=None if file.modified is None else datetime.fromtimestamp(file.modified, UTC),
                    sha256=file.sha256,
                    **_counted(count),
                )
                for file, count in zip(files[:MOST_OBJECTS], here, strict=False)
            ),
            fingerprint=fingerprint_of([*(file.sha256 for file in files), *hashes]) if whole else None,
            null_words=dialects[0].nulls_of_numbers if dialects else None,
            dialects=tuple(map(DialectView.of, dialects[:MOST_OBJECTS])),
        )


def _counted(count: FileCount | None) -> dict[str, int | None]:
    return {} if count is None else {"elements": count.elements, "nulls": count.nulls}


NoticeField = Annotated[
    str | None,
    Field(
        exclude_if=lambda notice: notice is None,
        description="What to know about how the elements were read: how many chunks of an array were not in its file, "
        "and the fill value that was taken for their elements.",
    ),
]
InputField = Annotated[
    InputView | None, Field(description="The files, datasets and URLs that were read; null if none was read.")
]
