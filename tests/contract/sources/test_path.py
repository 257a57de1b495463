"""Files as people have them, and as people who mean harm make them."""

import os
from io import BytesIO
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.lib import format as npy

from warpfold.contract.folders import Folders
from warpfold.contract.sources.generate import GenerateSource
from warpfold.contract.sources.path import open_npy
from warpfold.contract.sources.values import ValuesSource
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import GeneratedSource


@pytest.fixture
def root(data_root: Path) -> Path:
    np.save(data_root / "good.npy", np.arange(6, dtype=np.float32))
    return data_root


def refused(path: str, *roots: Path) -> str:
    """The sentence with which a path is refused."""
    with pytest.raises(InvalidInput) as caught:
        open_npy(path, roots)
    assert caught.value.field == "source.path"
    return str(caught.value)


def header(descr: str, shape: str = "(3,)", fortran: str = "False", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + text


def test_a_file_is_found_by_its_absolute_and_by_its_relative_path(root: Path) -> None:
    for path in (str(root / "good.npy"), "good.npy", "./sub/../good.npy"):
        assert open_npy(path, [root]).array.tolist() == [0, 1, 2, 3, 4, 5]


def test_each_root_is_searched(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / "second.npy", np.ones(2))
    assert open_npy("second.npy", [root, other]).array.tolist() == [1, 1]


def test_a_file_is_mapped_not_read(root: Path) -> None:
    array = open_npy("good.npy", [root]).array
    assert not array.flags.writeable
    assert not array.flags.owndata


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret.npy", "sub/../../secret.npy", "/nowhere/at/all.npy", "link.npy", "folder/x.npy"]
)
def test_outside_of_the_roots_nothing_is_read_nor_said(root: Path, path: str) -> None:
    np.save(root.parent / "secret.npy", np.ones(3))
    (root / "link.npy").symlink_to(root.parent / "secret.npy")
    (root / "folder").symlink_to(root.parent)
    assert refused(path, root) == f"{path!r} lies outside of this server's data roots"


def test_a_link_within_the_roots_is_followed(root: Path) -> None:
    (root / "link.npy").symlink_to("good.npy")
    assert open_npy("link.npy", [root]).array.size == 6


def test_a_neighbour_whose_name_begins_like_a_root_is_outside(root: Path) -> None:
    neighbour = Path(f"{root}-private")
    neighbour.mkdir()
    np.save(neighbour / "x.npy", np.ones(3))
    assert "outside" in refused(str(neighbour / "x.npy"), root)


def test_a_link_that_is_put_in_place_after_the_check_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = root.parent / "secret.npy"
    np.save(secret, np.ones(3))
    np.save(root / "swapped.npy", np.zeros(3))
    real_path = os.path.realpath

    def swap_after(path: str) -> str:
        resolved = real_path(path)
        (root / "swapped.npy").unlink()
        (root / "swapped.npy").symlink_to(secret)
        return resolved

    monkeypatch.setattr(os.path, "realpath", swap_after)
    assert "swapped.npy" in refused("swapped.npy", root)


def test_a_server_without_roots_offers_no_files() -> None:
    assert "without data roots" in refused("/etc/passwd")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.npy", "cannot be read: no such file or directory"),
        ("good.npy/deeper", "cannot be read: not a directory"),
        ("folder", "cannot be read: is a directory"),
        (".", "cannot be read: is a directory"),
        ("pipe", "is not a regular file"),
        ("x" * 300, "cannot be read: file name too long"),
        ("loop", "cannot be read"),
    ],
)
def test_what_is_no_file_is_refused(root: Path, path: str, message: str) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    sentence = refused(path, root)
    assert sentence.startswith(repr(path))
    assert message in sentence


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(root: Path) -> None:
    (root / "good.npy").chmod(0)
    assert "permission denied" in refused("good.npy", root)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a whole .npy file"),
        (b"\x93NUM", "not a whole .npy file"),
        (b"1.0,2.0,3.0\n", "not a whole .npy file"),
        (b"\x80\x04\x95pickle", "not a whole .npy file"),
        (header("'<f4'")[:20], "not a whole .npy file"),
        (header("'<f4'"), "is truncated: its header promises 12 bytes of data, 0 are there"),
        (header("'<f4'") + bytes(11), "is truncated: its header promises 12 bytes of data, 11 are there"),
        (header("'<f4'", "(1000000000000000,)") + bytes(99), "is truncated"),
        (header("'<f4'", "(-1,)") + bytes(99), "has the impossible shape (-1,)"),
        (header("'<f4'", "(1.5,)") + bytes(99), "not a whole .npy file"),
        (header("'<f4'", "()") + bytes(4), "holds a single value (0 dimensions), not an array"),
        (header("'|O'") + bytes(99), "pickled Python objects, which are never loaded"),
        (header("'<c16'") + bytes(99), "holds complex128, which a source of type array"),
        (header("'<M8[s]'") + bytes(99), "holds timestamp[s], which a source of type array"),
        (header("'<U8'") + bytes(99), "cannot be reduced"),
        (header("'<f16'") + bytes(99), "cannot be reduced"),
        (header("'|V2'") + bytes(99), "2 raw bytes an element"),
        (header("[('x', '<f4'), ('y', '<i8')]") + bytes(99), "records with the fields x, y"),
        (header("'<f4'", version=b"\x03\x00") + bytes(99), "not a whole .npy file"),
        (header("'<f4'", version=b"\x09\x00") + bytes(99), "not a whole .npy file"),
        (header("__import__('os').system('true')") + bytes(99), "not a whole .npy file"),
        (header("'<f4'", "(" * 5000) + bytes(99), "not a whole .npy file"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(root: Path, content: bytes, message: str) -> None:
    (root / "bad.npy").write_bytes(content)
    sentence = refused("bad.npy", root)
    assert sentence.startswith("'bad.npy'")
    assert message in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1" + bytes(20), "is Parquet, not .npy: a source of type table reads a column of it"),
        (b"\x89HDF\r\n\x1a\n" + bytes(20), "is HDF5, not .npy: a source of type array reads it"),
        (b"PK\x03\x04" + bytes(20), "is .npz, not .npy: a source of type array reads it"),
        (b"price\n1\n2\n", "is not a whole .npy file: a source of type array or table reads other formats"),
        (b"", "is not a whole .npy file: it is empty"),
        (b"\x93NUM", "is not a whole .npy file: a source of type array or table reads other formats"),
    ],
)
def test_a_file_of_another_format_names_the_source_that_reads_it(root: Path, content: bytes, message: str) -> None:
    (root / "bad.npy").write_bytes(content)
    assert refused("bad.npy", root) == f"'bad.npy' {message}"


def test_a_pickled_array_is_not_loaded(root: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(root / "boom"),))

    np.save(root / "bomb.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    assert "never loaded" in refused("bomb.npy", root)
    assert not (root / "boom").exists()


def test_bfloat16_that_numpy_saved_is_refused_with_the_reason(root: Path) -> None:
    np.save(root / "b.npy", np.ones(4, dtype=ml_dtypes.bfloat16))
    assert "as NumPy does with bfloat16" in refused("b.npy", root)


def test_an_empty_array_is_an_array(root: Path) -> None:
    for shape in ((0,), (3, 0), (0, 10**6)):
        np.save(root / "none.npy", np.empty(shape, dtype=np.int16))
        array = open_npy("none.npy", [root]).array
        assert (array.size, array.dtype.name) == (0, "int16")


def test_what_follows_the_data_is_ignored(root: Path) -> None:
    with (root / "good.npy").open("ab") as file:
        file.write(b"more")
    assert open_npy("good.npy", [root]).array.size == 6


def test_a_format_2_header_is_understood(root: Path) -> None:
    buffer = BytesIO()
    npy.write_array(buffer, np.arange(3), version=(2, 0))
    (root / "two.npy").write_bytes(buffer.getvalue())
    assert open_npy("two.npy", [root]).array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [">f4", "<f8", ">i8", "|u1", "|b1", "<f2"])
def test_either_byte_order_is_read(root: Path, dtype: str) -> None:
    np.save(root / "x.npy", np.array([0, 1, 1], dtype=dtype))
    source = open_npy("x.npy", [root])
    piece = source.read(1, 3)
    assert piece.dtype.isnative
    assert piece.tolist() == [1, 1]


def test_elements_come_in_c_order_even_of_a_file_in_fortran_order(root: Path) -> None:
    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.save(root / "f.npy", np.asfortranarray(matrix))
    source = open_npy("f.npy", [root])
    assert source.count == 12
    assert np.concatenate([source.read(0, 5), source.read(5, 12)]).tolist() == list(range(12))


def test_numbers_and_generators_become_sources(root: Path) -> None:
    numbers = ValuesSource(type="values", values=(1, "0x1.8p+1", "nan"), dtype="float16").open(Folders((), root))
    assert numbers.read(0, 2).tolist() == [1, 3]
    made = GenerateSource(type="generate", distribution="arange", n=5, seed=7).open(Folders((), root))
    assert isinstance(made, GeneratedSource)
    assert (made.count, made.seed, made.dtype.name) == (5, 7, "float32")
