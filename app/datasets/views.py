"""What the api says of uploaded arrays."""

from datetime import datetime
from math import prod

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.datasets.repository import Dataset


class DatasetView(BaseModel):
    """An uploaded array, as one of its owners holds it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
                    "name": "samples.npy",
                    "owner": "ann",
                    "dtype": "float64",
                    "shape": [1000, 1000],
                    "count": 1000000,
                    "bytes": 8000128,
                    "created_at": "2026-11-21T03:59:25.977248+00:00",
                    "last_used_at": "2026-11-21T04:10:02.114201+00:00",
                }
            ]
        }
    )

    id: str = Field(description="The SHA-256 of the .npy file: a `dataset` source names the array by it.")
    name: str = Field(description="A name for people; empty if none was given.")
    owner: str
    dtype: str
    shape: list[int]
    count: int = Field(description="The number of elements.")
    bytes: int = Field(description="The size of the .npy file in bytes.")
    created_at: datetime
    last_used_at: datetime = Field(
        description="When the array was uploaded, or last needed by a job; unused arrays are removed after a while."
    )

    @classmethod
    def of(cls, dataset: Dataset) -> "DatasetView":
        contents = dataset.contents
        return cls(
            id=contents.id,
            name=dataset.name,
            owner=dataset.owner,
            dtype=contents.dtype,
            shape=list(contents.shape),
            count=prod(contents.shape),
            bytes=contents.bytes,
            created_at=dataset.created_at,
            last_used_at=dataset.last_used_at,
        )


class DatasetPage(BaseModel):
    """A page of uploaded arrays, newest first."""

    items: list[DatasetView]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")
