"""What a reduction read, as its result tells it."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StrictBool

from warpfold.contract.frozen import Frozen
from warpfold.kernels.inputs import Inputs, fingerprint_of, hash_of_object
from warpfold.kernels.sequential import Remote

MOST_OBJECTS = 100
"""A result names no more of the objects that it read than these, and no more of the files."""


FingerprintField = Annotated[
    StrictBool,
    Field(
        exclude_if=lambda wanted: not wanted,
        description="Whether the files and objects that are read are hashed by SHA-256, too. They are read once more "
        "for that, beside the reduction, at 1 to 2 GB/s each. The hash of a dataset is always told.",
    ),
]
"""The field `fingerprint` of a spec."""


class ObjectView(Frozen):
    """An object of a place, as it was read; of a Zarr hierarchy, which is many objects, the URL alone is known."""

    url: str
    size: int | None = Field(description="The size of the object in bytes.")
    etag: str | None = Field(description="The ETag of the object, as its server writes it.")
    modified: str | None = Field(description="When the object was changed last, as its server writes it.")
    bytes_read: int = Field(description="How many bytes of the object were read.")
    sha256: str | None = Field(None, description="The SHA-256 of the object, where `fingerprint` asked for it.")


class FileView(Frozen):
    """A file of the machine that reduced it, as it was read; of a folder the name alone is known."""

    name: str = Field(description="The name of the file as the request gave it, or the id of a dataset.")
    size: int | None = Field(description="The size of the file in bytes.")
    modified: datetime | None = Field(description="When the file was changed last; null of a dataset, which never is.")
    sha256: str | None = Field(
        description="The SHA-256 of the file, where `fingerprint` asked for it; always of a dataset."
    )


class InputView(Frozen):
    """What a reduction read of files and by URLs."""

    count: int = Field(description="How many files and objects were read.")
    bytes_read: int = Field(description="How many bytes of all objects were read; those of files do not count.")
    objects: tuple[ObjectView, ...] = Field(description=f"The objects in order, the first {MOST_OBJECTS}.")
    files: tuple[FileView, ...] = Field((), description=f"The files in order, the first {MOST_OBJECTS}.")
    fingerprint: str | None = Field(
        None,
        description="The SHA-256 of the input. One file or object has its own. For several it is the SHA-256 of their "
        "hashes in hexadecimal digits, files first, each with a line feed behind it. Null if one of them is not known.",
    )

    @classmethod
    def of(cls, read: Sequence[Remote], inputs: Inputs, *, fingerprint: bool) -> "InputView | None":
        """None where nothing was read. Waits for the hashes of files, and makes those of objects. Raises InvalidInput
        where one is another than it was, and Unavailable."""
        if not read and not inputs.count:
            return None
        files = inputs.facts()
        # Hashed first, because an object counts the bytes that are read for that.
        hashes = [hash_of_object(remote) if fingerprint else None for remote in read]
        objects = [replace(remote.facts(), sha256=sha256) for remote, sha256 in zip(read, hashes, strict=True)]
        whole = len(files) == inputs.count
        return cls(
            count=inputs.count + len(read),
            bytes_read=sum(facts.bytes_read for facts in objects),
            objects=tuple(ObjectView(**asdict(facts)) for facts in objects[:MOST_OBJECTS]),
            files=tuple(
                FileView(
                    name=file.name,
                    size=file.size,
                    modified=None if file.modified is None else datetime.fromtimestamp(file.modified, UTC),
                    sha256=file.sha256,
                )
                for file in files[:MOST_OBJECTS]
            ),
            fingerprint=fingerprint_of([*(file.sha256 for file in files), *hashes]) if whole else None,
        )


InputField = Annotated[
    InputView | None, Field(description="What was read from files, datasets and URLs; null if nothing was.")
]
