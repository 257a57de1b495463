"""What a reduction read by URLs, as its result tells it."""

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.kernels.places.place import ObjectFacts

MOST_OBJECTS = 100
"""A result names no more of the objects that it read than these."""


class ObjectView(Frozen):
    """An object of a place, as it was read; of a Zarr hierarchy, which is many objects, the URL alone is known."""

    url: str
    size: int | None = Field(description="The size of the object in bytes.")
    etag: str | None = Field(description="The ETag of the object, as its server writes it.")
    modified: str | None = Field(description="When the object was changed last, as its server writes it.")
    bytes_read: int = Field(description="How many bytes of the object were read.")


class InputView(Frozen):
    """What a reduction read by URLs."""

    count: int = Field(description="How many objects were read.")
    bytes_read: int = Field(description="How many bytes of them all were read.")
    objects: tuple[ObjectView, ...] = Field(description=f"The objects in order, the first {MOST_OBJECTS}.")

    @classmethod
    def of(cls, read: Sequence[ObjectFacts]) -> "InputView | None":
        """None where nothing was read by URLs."""
        if not read:
            return None
        shown = tuple(ObjectView(**asdict(facts)) for facts in read[:MOST_OBJECTS])
        return cls(count=len(read), bytes_read=sum(facts.bytes_read for facts in read), objects=shown)
