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
            intake.feed(body)
    return caught.value


def test_a_npy_file_that_comes_as_bare_elements_is_not_added_up_with_its_head(tmp_path: Path) -> None:
    fault = refused(tmp_path / "a", npy(np.arange(4.0)), "float64")
    assert fault.errors[0].field == "dtype"
    assert "leave it out" in fault.detail


def test_only_who_sends_no_npy_file_is_told_of_bare_elements(tmp_path: Path) -> None:
    assert "need their `dtype`" in refused(tmp_path / "a", np.arange(4.0).tobytes()).detail
    assert "need their `dtype`" not in refused(tmp_path / "b", npy(np.array(["text"]))).detail
