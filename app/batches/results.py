"""The results of a batch as one stream: JSON lines or Parquet, a few hundred jobs in memory at a time."""

import io
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from warpfold.app.batches import repository
from warpfold.app.batches.repository import JobOutcome
from warpfold.app.db import Database
from warpfold.contract.json_value import JsonValue

JSON_LINES = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"

_AT_A_TIME = 200
_BYTES_AT_A_TIME = 1 << 20
_GROUP = 5_000
_GROUP_BYTES = 8 << 20


class BatchResultView(BaseModel):
    """A line of a batch's results: one job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "index": 0,
                    "id": "bad2cde1-a387-4c34-b05b-cb4651e4f880",
                    "kind": "reduce",
                    "status": "failed",
                    "spec": {
                        "kind": "reduce",
                        "op": "max",
                        "source": {"type": "values", "values": [], "dtype": "int64"},
                    },
                    "value": None,
                    "result": None,
                    "reason": "invalid_input",
                    "error": "max of no elements is undefined",
                }
            ]
        }
    )

    index: int = Field(description="The place of the job in its batch, from 0.")
    id: UUID
    kind: str
    status: str
    spec: dict[str, Any] = Field(description="The spec with all defaults; long `values` are in brief.")
    value: JsonValue | None = Field(
        description="The value of a reduction; null before the reduction has succeeded, and for jobs of other kinds."
    )
    result: dict[str, Any] | None = Field(
        description="The result, as `GET /v1/jobs/{id}/result` answers it; null without one."
    )
    reason: str | None = Field(description="Why the job failed; null if it did not.")
    error: str | None = Field(description="The reason in a sentence for people.")


async def outcomes(database: Database, batch_id: UUID) -> AsyncIterator[JobOutcome]:
    """The outcomes of a batch's jobs, in their order. Large results are read one by one."""
    after = -1
    while True:
        rows = await database.read(repository.outcomes, batch_id, after, _AT_A_TIME)
        for row in rows:
            if row.has_result and row.result is None:
                yield replace(row, result=await database.read(repository.result_of, row.id))
            else:
                yield row
        if len(rows) < _AT_A_TIME:
            return
        after = rows[-1].seq


async def json_lines(database: Database, batch_id: UUID) -> AsyncIterator[bytes]:
    """A `BatchResultView` a line."""
    lines: list[str] = []
    length = 0
    async for outcome in outcomes(database, batch_id):
        lines.append(_line(outcome))
        length += len(lines[-1])
        if len(lines) == _AT_A_TIME or length > _BYTES_AT_A_TIME:
            yield "".join(lines).encode()
            lines, length = [], 0
    yield "".join(lines).encode()


def _line(outcome: JobOutcome) -> str:
    head = {"index": outcome.index, "id": str(outcome.id), "kind": outcome.kind, "status": outcome.status}
    tail = {"reason": outcome.reason, "error": outcome.error}
    # The JSON of specs and results goes out as it is stored: −0.0 and integers of any size stay what they are.
    stored = f'"spec": {outcome.spec}, "value": {outcome.value or "null"}, "result": {outcome.result or "null"}'
    return f"{json.dumps(head)[:-1]}, {stored}, {json.dumps(tail, ensure_ascii=False)[1:]}\n"


async def parquet(database: Database, batch_id: UUID) -> AsyncIterator[bytes]:
    """The results of a batch as Parquet, a row group for some thousands of jobs. `value` is null where a float64 does
    not hold the value exactly; `value_text` has the value as JSON in any case."""
    table = _ParquetTable()
    group: list[JobOutcome] = []
    length = 0
    async for outcome in outcomes(database, batch_id):
        group.append(outcome)
        length += len(outcome.spec) + len(outcome.result or "")
        if len(group) == _GROUP or length > _GROUP_BYTES:
            yield await run_in_threadpool(table.add, group)
            group, length = [], 0
    yield await run_in_threadpool(table.add, group)
    yield await run_in_threadpool(table.close)


class _ParquetTable:
    """A Parquet file that is sent while it is written."""

    def __init__(self) -> None:
        import pyarrow
        from pyarrow import parquet

        text = pyarrow.string()
        names = ("id", "kind", "status", "spec", "value_text", "result", "reason", "error")
        fields = [("index", pyarrow.int32()), ("value", pyarrow.float64()), *((name, text) for name in names)]
        self._schema = pyarrow.schema(fields)
        self._sink = io.BytesIO()
        self._writer = parquet.ParquetWriter(pyarrow.PythonFile(_Forward(self._sink), mode="w"), self._schema)

    def add(self, outcomes: Sequence[JobOutcome]) -> bytes:
        """Write a row group; returns the bytes that this added to the file."""
        import pyarrow

        if outcomes:
            rows = [_cells(outcome) for outcome in outcomes]
            self._writer.write_table(pyarrow.Table.from_pylist(rows, schema=self._schema))
        return self._taken()

    def close(self) -> bytes:
        """End the file; returns its last bytes."""
        self._writer.close()
        return self._taken()

    def _taken(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data


class _Forward:
    """A file object that only writes: bytes that were sent cannot be sought again."""

    def __init__(self, sink: io.BytesIO) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._sink.write(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _cells(outcome: JobOutcome) -> dict[str, object]:
    return {
        "index": outcome.index,
        "id": str(outcome.id),
        "kind": outcome.kind,
        "status": outcome.status,
        "spec": outcome.spec,
        "value": _float_of(outcome.value),
        "value_text": outcome.value,
        "result": outcome.result,
        "reason": outcome.reason,
        "error": outcome.error,
    }


def _float_of(text: str | None) -> float | None:
    """The value as a float64 of the same value; None where no float64 equals it."""
    if text is None:
        return None
    value = json.loads(text)
    try:
        number = float(value)  # "nan" and "inf" are strings in JSON
    except OverflowError:
        return None
    return number if isinstance(value, str | float) or number == value else None
