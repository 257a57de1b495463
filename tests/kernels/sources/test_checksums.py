"""The checksum of many bytes, of parts that threads take."""

import tempfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources import checksums
from warpfold.kernels.sources.checksums import Checksum, verified


@given(
    length=st.one_of(st.integers(0, 3), st.integers(0, 5000), st.sampled_from([511, 512, 513, 1024])),
    begin=st.integers(0, 9),
    part=st.sampled_from([1, 7, 512]),
    seed=st.integers(0, 99),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_a_checksum_is_that_of_zlib_however_the_bytes_are_cut_and_no_changed_bit_passes(
    length: int, begin: int, part: int, seed: int, data: st.DataObject
) -> None:
    content = bytearray(np.random.default_rng(seed).bytes(length))
    crc = zlib.crc32(content)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as file:
        patch.setattr(checksums, "_PART_BYTES", part if length <= 64 else 512)
        patch.setattr(checksums, "_PIECE_BYTES", 100)
        file.write(bytes(begin) + content)
        file.flush()
        checksum = Checksum(file.fileno(), begin, length, crc, "a", "the file x.npz")
        with verified([checksum]):
            pass
        if not length:
            return
        at = data.draw(st.integers(0, 8 * length - 1))
        content[at // 8] ^= 1 << at % 8
        file.seek(begin)
        file.write(content)
        file.flush()
        with (
            pytest.raises(InvalidInput, match=r"^the file x\.npz is damaged: "),
            verified([checksum]),
        ):
            pass


def test_a_file_that_was_cut_is_an_error_and_that_of_the_block_comes_first() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(10))
        file.flush()
        with pytest.raises(InvalidInput, match="became shorter"), verified([Checksum(file.fileno(), 0, 11, 0, "a")]):
            pass
        with pytest.raises(KeyError), verified([Checksum(file.fileno(), 0, 11, 0, "a")]):
            raise KeyError
