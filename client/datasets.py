"""Conversations about uploaded arrays, and the uploads themselves."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from warpfold.client.arrays import as_numpy
from warpfold.client.catalogue import whoami
from warpfold.client.exchange import Call, Content, Steps, one, pages
from warpfold.client.models import Dataset
from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.npy import head_of

_PIECE = 1 << 20
_PAGE = 200


@dataclass(frozen=True)
class ArrayContent:
    """An array as the .npy file of one dimension that it would be saved as, its elements in C order."""

    array: NDArray[Any]

    @cached_property
    def _elements(self) -> memoryview:
        little = self.array.dtype.newbyteorder("<") if self.array.dtype.kind != "V" else self.array.dtype
        return np.ascontiguousarray(self.array, dtype=little).reshape(-1).view(np.uint8).data

    @cached_property
    def _head(self) -> bytes:
        return head_of(dtype_of(self.array.dtype), self.array.size)

    @property
    def length(self) -> int:
        return len(self._head) + len(self._elements)

    def pieces(self) -> Iterator[bytes]:
        yield self._head
        for start in range(0, len(self._elements), _PIECE):
            yield bytes(self._elements[start : start + _PIECE])


@dataclass(frozen=True)
class FileContent:
    """A .npy file as it is."""

    path: Path

    @property
    def length(self) -> int:
        return self.path.stat().st_size

    def pieces(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece


def content_of(data: object, dtype: str | None) -> Content:
    """What is uploaded of an array, or of a .npy file given as its Path. Raises TypeError for what is no array."""
    if not isinstance(data, Path):
        return ArrayContent(as_numpy(data, dtype))
    if dtype is not None:
        raise TypeError(f"{data} is sent as it is: for another dtype load it and hand over the array")
    return FileContent(data)


def digest(content: Content) -> str:
    """What the service will call it."""
    running = hashlib.sha256()
    for piece in content.pieces():
        running.update(piece)
    return running.hexdigest()


def upload(content: Content, name: str) -> Steps[Dataset]:
    """Have the service keep an array; what it keeps for this user already is not sent again."""
    known: Dataset | None = yield Call("GET", f"/v1/datasets/{digest(content)}", _found, expected=(404,))
    if known is not None:
        user = yield from whoami()
        if known.owner == user.name:
            return known
    kept: Dataset = yield Call("POST", "/v1/datasets", _dataset, {"name": name or None}, content=content)
    return kept


def get(dataset_id: str) -> Steps[Dataset]:
    return one(Call("GET", f"/v1/datasets/{dataset_id}", _dataset))


def delete(dataset_id: str) -> Steps[None]:
    return one(Call("DELETE", f"/v1/datasets/{dataset_id}", lambda response: None))


def find(owner: str | None, limit: int) -> Steps[list[Dataset]]:
    """Up to `limit` uploaded arrays, newest first."""
    return pages("/v1/datasets", Dataset, {"owner": owner}, limit=limit, page=_PAGE)


def _dataset(response: httpx.Response) -> Dataset:
    return Dataset.model_validate_json(response.content)


def _found(response: httpx.Response) -> Dataset | None:
    return None if response.status_code == 404 else _dataset(response)
