"""How many blocks a strategy is launched with."""

import pytest

from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.strategies.own import suited
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS

H200 = 132


def test_a_launch_line_is_read() -> None:
    assert LaunchShape.parse("threads=256 blocks_per_multiprocessor=4 flight=2 cluster=8 cooperative") == LaunchShape(
        threads=256, blocks_per_multiprocessor=4, flight=2, cluster=8, cooperative=True
    )


STREAMING = LaunchShape(threads=512, blocks_per_multiprocessor=2, flight=4)
IN_ROUNDS = LaunchShape(threads=512, blocks_per_multiprocessor=2, flight=4, rounds=8)
READ = 4  # elements of float32 that one read brings


def test_a_small_array_gets_one_block() -> None:
    assert LaunchShape(threads=256, max_blocks=1024).grid(1, 4, H200) == (1, 256)
    assert STREAMING.grid(2 * 512 * 4 * READ, 4, H200) == (1, 512)


def test_one_block_has_no_more_threads_than_read_all_at_once() -> None:
    shapes = [STREAMING.grid(count, 4, H200) for count in (1, 32 * 4 * READ, 32 * 4 * READ + 1, 200 * 4 * READ)]
    assert shapes == [(1, 32), (1, 32), (1, 64), (1, 256)]


def test_a_middle_sized_array_gets_few_small_blocks_and_then_some() -> None:
    assert STREAMING.grid(2 * 512 * 4 * READ + 1, 4, H200) == (33, 128)
    assert STREAMING.grid(33 * 128 * 4 * READ + 1, 4, H200) == (33, 256)
    assert STREAMING.grid(33 * 256 * 4 * READ + 1, 4, H200) == (129, 128)
    assert STREAMING.grid(129 * 512 * 4 * READ, 4, H200) == (129, 512)
    assert STREAMING.grid(3 * 129 * 512 * 4 * READ, 4, H200) == (129, 512)


def test_a_smaller_gpu_gets_no_more_blocks_than_it_has_multiprocessors_for_a_middle_sized_array() -> None:
    assert STREAMING.grid(40 * 512 * 4 * READ, 4, 40) == (40, 512)


def test_a_large_array_gets_as_many_blocks_as_are_allowed() -> None:
    assert LaunchShape(threads=256, max_blocks=1024).grid(1 << 33, 1, H200) == (1024, 256)
    assert STREAMING.grid(3 * 129 * 512 * 4 * READ + 1, 4, H200)[0] > 129
    assert STREAMING.grid(1 << 33, 4, H200) == (2 * H200, 512)


def test_in_rounds_a_large_array_gets_blocks_of_equal_work() -> None:
    assert IN_ROUNDS.grid(10**7, 4, H200) == (2 * H200, 512)
    assert IN_ROUNDS.grid(1 << 28, 4, H200) == (4096, 512)
    assert IN_ROUNDS.grid(1 << 34, 4, H200) == (8192, 512)


@pytest.mark.parametrize(
    ("op", "dtype"), [("argmin", "float32"), ("argmax", "int8"), ("sum", "int32"), ("mean", "uint64")]
)
def test_what_is_slow_to_fold_goes_in_one_wave(op: str, dtype: str) -> None:
    assert suited(IN_ROUNDS, OPS[op], DTYPES[dtype]).grid(1 << 30, 4, H200) == (2 * H200, 512)


@pytest.mark.parametrize(("op", "dtype"), [("sum", "float32"), ("norm2", "float64"), ("max", "int32")])
def test_what_folds_in_one_word_goes_in_rounds(op: str, dtype: str) -> None:
    assert suited(IN_ROUNDS, OPS[op], DTYPES[dtype]) is IN_ROUNDS


def test_a_tile_fixes_the_number_of_blocks() -> None:
    launch = LaunchShape(threads=256, tile=2048)
    assert [launch.grid(count, 4, H200) for count in (1, 2048, 2049, 1 << 30)] == [
        (blocks, 256) for blocks in (1, 1, 2, 1 << 19)
    ]


def test_blocks_come_in_whole_clusters() -> None:
    launch = LaunchShape(threads=256, blocks_per_multiprocessor=4, flight=4, cluster=8)
    assert launch.grid(1, 4, H200)[0] == 8
    assert launch.grid(1 << 33, 4, H200)[0] % 8 == 0


def test_a_launch_needs_one_limit() -> None:
    with pytest.raises(ValueError, match="give one of"):
        LaunchShape(threads=256)
