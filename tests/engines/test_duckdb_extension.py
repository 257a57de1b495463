"""An extension of DuckDB is a library whose one function jumps to a function of this process."""

import ctypes
import platform
from pathlib import Path

import pytest

from warpfold.engines.duckdb_extension import extension
from warpfold.kernels.errors import Unavailable

CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def test_the_loader_of_the_system_loads_it_and_its_function_jumps(tmp_path: Path) -> None:
    target = CALL(lambda a, b: 10 * a + b)
    address = ctypes.cast(target, ctypes.c_void_p).value or 0
    path = tmp_path / "jump.duckdb_extension"
    path.write_bytes(extension("jump", address, "linux_amd64"))
    library = ctypes.CDLL(str(path))
    library.jump_init_c_api.restype = ctypes.c_int64
    assert library.jump_init_c_api(ctypes.c_int64(4), ctypes.c_int64(2)) == 42


def test_it_ends_with_the_fields_that_duckdb_reads() -> None:
    fields = extension("jump", 1, "linux_amd64")[-512:-256]
    assert [fields[at : at + 32].rstrip(b"\0") for at in range(96, 256, 32)] == [
        b"C_STRUCT",
        b"1",
        b"v1.2.0",
        b"linux_amd64",
        b"4",
    ]


def test_another_processor_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(Unavailable, match="not linux on riscv64"):
        extension("jump", 1, "linux_riscv64")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert extension("jump", 1, "linux_arm64")[18:20] == (183).to_bytes(2, "little")
