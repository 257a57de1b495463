"""Inspections of files beyond this machine."""

import asyncio
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from tests.support.places.web import folders_of, web_server
from warpfold.app.inspection.inspections import Inspections
from warpfold.contract.sources.inspection import FileSources, Inspection
from warpfold.kernels.errors import InvalidInput

SOURCE: TypeAdapter[FileSources] = TypeAdapter(FileSources)


def test_an_object_of_an_allowed_place_is_looked_into_and_no_other() -> None:
    table = io.BytesIO()
    pq.write_table(pa.table({"price": [1.5, None]}), table)
    with web_server() as web:
        web.files["sales.parquet"] = table.getvalue()
        inspections = Inspections(folders_of(web.place()))

        def look(url: str) -> Inspection:
            source: Any = SOURCE.validate_python({"type": "table", "path": url})
            return asyncio.run(inspections.inspect(1, source, 30.0))

        try:
            inspection = look(web.url("sales.parquet"))
            assert (inspection.format, inspection.rows, inspection.contents[0].nulls) == ("Parquet", 2, 1)
            assert inspection.bytes == len(table.getvalue())
            with pytest.raises(InvalidInput, match="outside of the places that this server may read") as caught:
                look("https://elsewhere.example/sales.parquet")
            assert caught.value.field == "source.path"
        finally:
            inspections.close()
