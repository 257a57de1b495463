"""Whether an array fits."""

from pathlib import Path

import pytest

from warpfold.kernels.cpu import memory
from warpfold.kernels.errors import OutOfMemory


def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000)
    memory.require(1_000, "a thing")
    with pytest.raises(OutOfMemory, match=r"a thing needs 1,001 bytes of memory, and 1,000 are available") as raised:
        memory.require(1_001, "a thing")
    assert raised.value.reason == "out_of_memory"


def test_a_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    used.write_text("600\n")
    monkeypatch.setattr(memory, "_LIMIT", limit)
    monkeypatch.setattr(memory, "_USED", used)
    unlimited = memory.available_bytes()
    assert unlimited > 1_000_000
    limit.write_text("1000\n")
    assert memory.available_bytes() == 400
    limit.write_text("max\n")
    assert memory.available_bytes() > 1_000_000
