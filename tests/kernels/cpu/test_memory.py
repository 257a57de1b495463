"""Whether an array fits."""

import os
from pathlib import Path

import numpy as np
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


def test_a_process_has_no_more_than_its_limit_leaves() -> None:
    pid = os.fork()
    if pid == 0:  # a limit cannot be taken back
        memory.limit_memory(64 << 20)
        try:
            np.ones(16 << 20)
        except MemoryError:
            os._exit(0 if memory.available_bytes() <= 64 << 20 else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_slots_share_three_quarters_of_the_memory() -> None:
    assert memory.share_of_memory(3) == memory.total_bytes() * 3 // 4 // 3
