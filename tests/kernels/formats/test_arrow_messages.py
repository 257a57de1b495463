"""What the messages of Arrow files and streams say of a batch is added up before it is decoded."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import arrow_messages
from warpfold.kernels.formats.arrow_messages import Messages

TABLE = pa.table(
    {
        "a": np.zeros(1000),
        "words": ["x"] * 1000,
        "b": pa.array([True, None] * 500),
        "d": pa.array(["q", "r"] * 500).dictionary_encode(),
    }
)


def written(path: Path, kind: str, compression: str | None, rows: int) -> Any:
    begin = {"stream": ipc.new_stream, "file": ipc.new_file}[kind]
    with begin(str(path), TABLE.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(TABLE, rows)
    return path.open("rb")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("kind", ["stream", "file"])
def test_only_the_columns_that_are_read_count(
    tmp_path: Path, kind: str, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(columns: set[str], rows: int) -> None:
        with written(tmp_path / "x", kind, compression, rows) as file:
            messages = Messages(file, TABLE.schema, columns)
            if kind == "file":
                assert messages.check_file() > 0
            else:
                assert len(list(messages.check_stream())) == -(-1000 // rows)

    monkeypatch.setattr(arrow_messages, "MOST_BATCH_BYTES", 4200)
    look({"b"}, 400)
    look({"a"}, 400)
    look({"words", "b"}, 400)
    with pytest.raises(InvalidInput, match=r"becomes 8,\d+ bytes, and at most 4,200"):
        look({"a"}, 1000)
    with pytest.raises(InvalidInput, match=r"becomes 5,\d+ bytes"):
        look({"a", "words"}, 400)


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_what_is_not_compressed_is_as_large_as_its_file(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_messages, "MOST_BATCH_BYTES", 1)
    with written(tmp_path / "x", kind, None, 400) as file:
        messages = Messages(file, TABLE.schema, {"a"})
        assert messages.check_file() == 0 if kind == "file" else len(list(messages.check_stream())) == 3


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_any_byte_may_be_wrong(tmp_path: Path, kind: str) -> None:
    with written(tmp_path / "x", kind, "zstd", 400):
        whole = (tmp_path / "x").read_bytes()
    for at in range(0, len(whole), 3):
        (tmp_path / "y").write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        with (tmp_path / "y").open("rb") as file:
            messages = Messages(file, TABLE.schema, {"a"})
            try:
                messages.check_file() if kind == "file" else list(messages.check_stream())
            except InvalidInput as error:
                assert "becomes" in str(error)  # noqa: PT017
