import asyncio
import gzip
import sys
from pathlib import Path

import pytest

from warpfold.app.dashboard.assets import VegaBundle


def test_the_bundle_is_made_once_for_all_who_ask_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(bundle: VegaBundle) -> list[bytes]:
        return [asset.content for asset in await asyncio.gather(*(bundle.asset() for _ in range(3)))]

    first = asyncio.run(ask(VegaBundle(tmp_path / "cache")))
    assert len(set(first)) == 1
    assert b"vegaEmbed" in first[0]
    [kept] = (tmp_path / "cache").iterdir()
    assert kept.read_bytes() == first[0]
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # nothing can be made any more, and need not be
    assert asyncio.run(ask(VegaBundle(tmp_path / "cache"))) == first


def test_the_bundle_carries_the_interpreter_that_needs_no_eval(tmp_path: Path) -> None:
    bundle = asyncio.run(VegaBundle(tmp_path).asset())
    assert b"expressionInterpreter" in bundle.content
    assert gzip.decompress(bundle.compressed) == bundle.content
    assert len(bundle.compressed) < 400_000


def test_a_bundle_that_cannot_be_made_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match="exit code 1"):
        asyncio.run(VegaBundle(tmp_path / "cache").asset())
    assert not (tmp_path / "cache").exists()
