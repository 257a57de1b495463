"""Files of text in blocks of whole lines."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats import text_blocks
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.text_blocks import TextLines


@pytest.fixture(autouse=True, params=["compiled", "at once"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts are read by compiled functions, and on a machine that has none."""
    monkeypatch.setattr(text_blocks, "_has_compiled", lambda: request.param == "compiled")


def blocks_of(path: Path, content: bytes, *, seed: int = 0) -> list[bytes]:
    """The blocks of a file, read in any order."""
    path.write_bytes(content)
    with path.open("rb") as file:
        blocks = list(enumerate(TextLines(file, None, Dialect()).blocks()))
        Random(seed).shuffle(blocks)
        read = {number: bytes(block().text) for number, block in blocks}
    return [read[number] for number in sorted(read)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.integers(0, 300).map(lambda length: b"z" * length), max_size=40),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    ended=st.booleans(),
    sizes=st.tuples(st.integers(1, 200), st.integers(1, 400)),
    seed=st.integers(0, 9),
)
def test_blocks_hold_whole_lines_and_together_all_of_the_text(  # noqa: PLR0917 - drawn arguments
    tmp_path: Path, lines: list[bytes], end: bytes, ended: bool, sizes: tuple[int, int], seed: int
) -> None:
    content = end.join(lines) + (end if ended else b"")
    block, near = sizes
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_blocks, "_BLOCK_BYTES", block)
        patched.setattr(text_blocks, "_LEAST_BLOCK_BYTES", 1)
        patched.setattr(text_blocks, "_NEAR_BYTES", near)
        blocks = blocks_of(tmp_path / "x.csv", content, seed=seed)
    assert b"".join(blocks) == content
    ends = [read for read in blocks[:-1] if read and not read.endswith(end)]
    assert not any(b"".join(blocks[number + 1 :]) for number, read in enumerate(blocks) if read in ends)


def test_carriage_returns_behind_line_feeds_end_lines_in_a_short_last_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "_even_blocks", lambda *_: 64)
    lines_before, lines_behind = b"x\n" + b"12\n" * 20 + b"1\r", b"7\r" * 10
    for seed in range(4):  # a thread reads its blocks into the same memory, in any order
        blocks = blocks_of(tmp_path / "x.csv", lines_before + lines_behind, seed=seed)
        assert blocks == [lines_before, lines_behind]


def test_a_line_longer_than_any_block_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_FIRST_BYTES", 1000)
    monkeypatch.setattr(text_blocks, "_NEAR_BYTES", 10)
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(text_blocks, "_LEAST_BLOCK_BYTES", 1)
    with pytest.raises(InvalidInput, match="a line has more than 1,000 bytes"):
        blocks_of(tmp_path / "x.csv", b"x\n" + b"1" * 3000 + b"\n2\n")


def test_threads_parse_as_many_blocks_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for threads in (1, 2, 12, 16):
        for size in (1, 1 << 20, 136_000_000, 137_000_001, 572_000_000, 10**12):
            block = text_blocks._even_blocks(size, threads)
            count = -(-size // block)
            assert block <= text_blocks._BLOCK_BYTES
            assert count % threads == 0 or block == text_blocks._LEAST_BLOCK_BYTES, (threads, size)
