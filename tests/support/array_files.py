"""Arrays in files, opened as jobs open them."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from warpfold.contract.folders import Folders
from warpfold.contract.sources.array import ArrayFileSource
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.sequential import Elements, gathered

SELECTED: list[tuple[list[Any], tuple[Any, ...]]] = [
    ([], ()),
    ([2], (slice(2, 3),)),
    ([{"start": 1, "stop": 6, "step": 2}], (slice(1, 6, 2),)),
    ([None, {"stop": -1}, {"start": -3}], (slice(None), slice(0, -1), slice(-3, None))),
    ([{"start": 3, "stop": 3}], (slice(3, 3),)),
    ([-1, -2, {"step": 3}], (slice(-1, None), slice(-2, -1), slice(None, None, 3))),
]
ARRAY: TypeAdapter[ArrayFileSource] = TypeAdapter(ArrayFileSource)


def opened(root: Path, path: str, **options: Any) -> Elements:
    asked = ARRAY.validate_python({"type": "array", "path": path, **options})
    return ARRAY.validate_json(asked.model_dump_json()).open(Folders((root,), root))


def elements(root: Path, path: str, **options: Any) -> NDArray[Any]:
    source = gathered(opened(root, path, **options))
    return source.read(0, source.count)


def refused(root: Path, path: str, field: str = "source.path", **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        elements(root, path, **options)
    assert caught.value.field == field
    message = str(caught.value)
    assert message.startswith(repr(path))
    assert "\n" not in message
    return message


def zipped(folder: Path, file: Path, top: str = "", compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, f"{top}{path.relative_to(folder)}")
