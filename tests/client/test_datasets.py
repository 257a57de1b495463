"""Uploaded arrays by the client, at a whole service."""

from pathlib import Path

import numpy as np
import pytest

from warpfold.client import (
    Client,
    Refused,
)

LARGE = np.random.default_rng(5).standard_normal(30_000)


def test_a_file_is_uploaded_as_it_is(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    np.save(path, LARGE)
    assert client.reduce(path, "max").value == LARGE.max()
    for use in (client.reduce, client.upload):
        with pytest.raises(TypeError, match="is sent as it is"):
            use(path, dtype="float32")
    kept = client.upload(path, "by name")
    assert client.dataset(kept.id) == kept
    client.delete_dataset(kept.id)
    with pytest.raises(Refused) as refusal:
        client.dataset(kept.id)
    assert refusal.value.status == 404
