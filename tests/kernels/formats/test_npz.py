"""Archives whose directory or whose members are not what they say."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.array_files import elements, refused

zarr = pytest.importorskip("zarr")


def npz(path: Path, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in {"a": np.arange(5.0), "b": np.arange(9.0)}.items():
            written = io.BytesIO()
            np.save(written, array)
            archive.writestr(f"{name}.npy", written.getvalue())


def renamed(path: Path, name: bytes, other: bytes) -> None:
    """Rename a member in the directory alone, which is at the end."""
    whole = path.read_bytes()
    at = whole.rindex(name)
    path.write_bytes(whole[:at] + other + whole[at + len(name) :])


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_unpacked_as_a_whole_is_refused(data_root: Path, compression: int) -> None:
    npz(data_root / "x.npz", compression)
    assert "'a.npy' packed by a method other than deflate" in refused(data_root, "x.npz", array="a")


def test_a_member_that_the_directory_names_otherwise_is_not_missing(data_root: Path) -> None:
    npz(data_root / "x.npz")
    assert elements(data_root, "x.npz", array="b").size == 9
    renamed(data_root / "x.npz", b"a.npy", b"a.npz")
    assert "its directory calls 'a.npz' what is not" in refused(data_root, "x.npz")  # not: b, the only array


def test_members_that_a_comment_of_a_damaged_length_swallows_are_not_missing(data_root: Path) -> None:
    npz(data_root / "x.npz")
    whole = bytearray((data_root / "x.npz").read_bytes())
    whole[whole.index(b"PK\x01\x02") + 33] = 127  # of the length of the first comment
    (data_root / "x.npz").write_bytes(whole)
    assert "another number of members" in refused(data_root, "x.npz")  # not: a, the only array


def test_an_archive_with_a_record_for_many_members_is_read(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    npz(data_root / "x.npz")
    assert b"PK\x06\x06" in (data_root / "x.npz").read_bytes()
    assert elements(data_root, "x.npz", array="b").size == 9


def test_a_member_without_a_name_is_refused(data_root: Path) -> None:
    with zipfile.ZipFile(data_root / "x.npz", "w") as archive:
        archive.writestr("a", b"")
    whole = (data_root / "x.npz").read_bytes()
    at = whole.rindex(b"PK\x01\x02")
    nameless = whole[: at + 28] + b"\0\0" + whole[at + 30 : at + 46] + b"\x01" + whole[at + 47 :]
    (data_root / "x.npz").write_bytes(nameless.replace(b"\x01PK\x05", b"PK\x05"))
    assert "is not a whole zip archive" in refused(data_root, "x.npz")


@pytest.mark.parametrize("name", [b"c/1", b".zattrs", b"1"])
def test_a_chunk_with_a_damaged_name_in_the_directory_is_not_missing(data_root: Path, name: bytes) -> None:
    version = 3 if name == b"c/1" else 2
    array = zarr.create_array(str(data_root / "z"), shape=(8,), chunks=(4,), dtype="<f8", zarr_format=version)
    array[:] = np.arange(8.0)
    array.attrs["scale_factor"] = 2.0
    with zipfile.ZipFile(data_root / "z.zip", "w") as archive:
        for file in sorted((data_root / "z").rglob("*")):
            if file.is_file():
                archive.write(file, str(file.relative_to(data_root / "z")))
    assert elements(data_root, "z.zip", stored=True).sum() == 28
    renamed(data_root / "z.zip", name, name[:-1] + b"q")
    assert "its directory calls" in refused(data_root, "z.zip", stored=True)
