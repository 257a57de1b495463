"""Conversations about the contents of files that the service reads."""

from collections.abc import Mapping
from typing import Any

from warpfold.client.answer import Answer
from warpfold.client.exchange import Call, Steps, send

_LOOK_S = 60.0


class FileColumn(Answer):
    """An array or a column in a file. `dtype` is its type in the format's own name, and `reduced_as` the dtype that a
    job gives it, None where no job can reduce it. A fact that only reading the whole file would tell is None."""

    name: str
    dtype: str
    reduced_as: str | None
    shape: tuple[int, ...] | None
    nulls: int | None
    chunks: tuple[int, ...] | None
    bytes: int | None


class Inspection(Answer):
    """The contents of a file, or of the first of `files`: arrays or columns, as `holds` says."""

    file: str
    files: int
    format: str
    sheets: tuple[str, ...] = ()
    bytes: int | None
    holds: str
    rows: int | None
    contents: list[FileColumn]
    left_out: int


def inspect(source: str | Mapping[str, Any], timeout_s: float) -> Steps[Inspection]:
    """Have the service look into a file of its own, by its path, or into the files of a source."""
    named = source if isinstance(source, Mapping) else {"type": "array", "path": source}
    body = {"source": dict(named), "timeout_s": timeout_s}
    read_s = timeout_s + _LOOK_S
    return send(
        Call(
            "POST",
            "/v1/sources/inspect",
            lambda answer: Inspection.model_validate_json(answer.content),
            body=body,
            read_s=read_s,
        )
    )
