import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from warpfold.app.datasets.intake import Intake
from warpfold.app.http.errors import Invalid
from warpfold.kernels.dtypes import dtype_named


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def refused(path: Path, body: bytes, dtype: str | None = None) -> Invalid:
    with path.open("w+b") as file:
        intake = Intake(file, None if dtype is None else dtype_named(dtype), len(body))
        with pytest.raises(Invalid) as caught:
            intake.write(body)
    return caught.value


def test_a_npy_file_that_comes_as_bare_elements_is_not_added_up_with_its_head(tmp_path: Path) -> None:
    fault = refused(tmp_path / "a", npy(np.arange(4.0)), "float64")
    assert fault.errors[0].field == "dtype"
    assert "leave it out" in fault.detail


def test_only_who_sends_no_npy_file_is_told_of_bare_elements(tmp_path: Path) -> None:
    assert "need their `dtype`" in refused(tmp_path / "a", np.arange(4.0).tobytes()).detail
    assert "need their `dtype`" not in refused(tmp_path / "b", npy(np.array(["text"]))).detail


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"PAR1" + bytes(20_000), "Parquet"),
        (b"ARROW1\0\0" + bytes(9), "Arrow"),
        (b"PK\x03\x04" + bytes(9), ".npz"),
        (b"\x89HDF\r\n\x1a\n" + bytes(9), "HDF5"),
        (b"\x1f\x8b" + bytes(9), "gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd"),
    ],
)
def test_a_file_of_another_format_is_kept_as_it_is_and_not_parsed(tmp_path: Path, body: bytes, name: str) -> None:
    with (tmp_path / "a").open("w+b") as file:
        intake = Intake(file, None, len(body))
        assert intake.begin(body) == len(body)
        for at in range(0, len(body), 7000):
            intake.write(body[at : at + 7000])
        kept = intake.finish()
    assert (kept.dtype, kept.shape, kept.bytes) == (name, (), len(body))
    assert kept.id == hashlib.sha256(body).hexdigest()
    assert (tmp_path / "a").read_bytes() == body


def test_a_file_of_another_format_comes_whole_and_says_its_length(tmp_path: Path) -> None:
    body = b"PAR1" + bytes(20_000)
    for length, message in (
        (len(body) + 1, "the upload is truncated"),
        (len(body) - 1, "more bytes than the Content-"),
    ):
        with (tmp_path / "a").open("w+b") as file, pytest.raises(Invalid, match=message):
            _whole(Intake(file, None, length), body)
    with (tmp_path / "a").open("w+b") as file, pytest.raises(Invalid) as caught:
        Intake(file, None, None).begin(body)
    assert caught.value.errors[0].field == "Content-Length"


def _whole(intake: Intake, body: bytes) -> None:
    intake.write(body)
    intake.finish()


def test_text_is_kept_where_its_sender_calls_it_a_table_and_it_is_no_other_bytes(tmp_path: Path) -> None:
    body = "größe,x\n1,2\n".encode()
    for length in (len(body), 3):  # the last character of what is looked at may be cut
        with (tmp_path / "a").open("w+b") as file:
            intake = Intake(file, None, len(body), text=True)
            intake.begin(body[:length])
            intake.write(body)
            kept = intake.finish()
        assert (kept.dtype, kept.shape, kept.bytes) == ("text", (), len(body))
    for encoding in ("latin-1", "utf-16", "utf-16-be"):
        recoded = body.decode().encode(encoding)
        with (tmp_path / "a").open("w+b") as file:
            assert Intake(file, None, len(recoded), text=True).begin(recoded) == len(recoded)
    for other in (b"x\0\0y\n", bytes(8)):
        with (tmp_path / "a").open("w+b") as file, pytest.raises(Invalid, match="is not a table of text"):
            Intake(file, None, len(other), text=True).begin(other)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"CDF\x01" + bytes(99), "the body is a NetCDF-3 file, which is not read: `nccopy"),
        (b"FEA1" + bytes(99), "the body is a Feather file of version 1, which is not read"),
        (b"[1, 2]\n", "the body is JSON, which is not read"),
        (b"x,y\n1,2\n", "not a whole .npy file"),
    ],
)
def test_what_no_job_would_read_is_not_kept(tmp_path: Path, body: bytes, why: str) -> None:
    assert why in refused(tmp_path / "a", body).detail


def test_bare_elements_may_look_like_json(tmp_path: Path) -> None:
    body = b'{"x": 1}'
    with (tmp_path / "a").open("w+b") as file:
        intake = Intake(file, dtype_named("float64"), len(body))
        intake.begin(body)
        intake.write(body)
        assert intake.finish().shape == (1,)
