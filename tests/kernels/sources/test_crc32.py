"""The compiled checksum is that of zlib."""

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.sources import crc32 as module
from warpfold.kernels.sources.crc32 import crc32


@given(
    length=st.one_of(st.integers(0, 300), st.integers(0, 20_000)),
    ahead=st.integers(0, 17),
    crc=st.one_of(st.just(0), st.just(0xFFFFFFFF), st.integers(0, 0xFFFFFFFF)),
    seed=st.integers(0, 99),
)
@settings(max_examples=300, deadline=None)
def test_every_length_begins_behind_every_checksum(length: int, ahead: int, crc: int, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, ahead + length, np.uint8)[ahead:]
    assert crc32(data, crc) == zlib.crc32(data.data, crc)


@pytest.mark.parametrize("byte", [0, 1, 128, 255])
def test_long_runs_of_one_byte_do_too(byte: int) -> None:
    data = np.full((1 << 20) + 77, byte, np.uint8)
    assert crc32(data) == zlib.crc32(data.data)


def test_a_processor_without_the_instruction_has_the_same_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.arange(1000).astype(np.uint8)
    expected = crc32(data)
    monkeypatch.setattr("warpfold.kernels.sources.crc32.binding.get_host_cpu_features", dict)
    module._has_products.cache_clear()
    try:
        assert crc32(data) == expected == zlib.crc32(data.data)
    finally:
        module._has_products.cache_clear()
