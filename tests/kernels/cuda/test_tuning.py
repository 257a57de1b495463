"""How many blocks a strategy is launched with."""

import pytest

from kernels.cuda.tuning import Launch, tuned

H200 = 132


def test_a_launch_line_is_read() -> None:
    assert Launch.parse("threads=256 blocks_per_multiprocessor=4 flight=2 cluster=8 cooperative") == Launch(
        threads=256, blocks_per_multiprocessor=4, flight=2, cluster=8, cooperative=True
    )


def test_a_small_array_gets_one_block() -> None:
    assert Launch(threads=256, max_blocks=1024).blocks(1, 4, H200) == 1
    assert Launch(threads=512, blocks_per_multiprocessor=4, flight=4).blocks(1000, 4, H200) == 1


def test_a_large_array_gets_as_many_blocks_as_are_allowed() -> None:
    assert Launch(threads=256, max_blocks=1024).blocks(1 << 33, 1, H200) == 1024
    assert Launch(threads=512, blocks_per_multiprocessor=4, flight=4).blocks(1 << 33, 4, H200) == 4 * H200


def test_work_is_spread_over_the_multiprocessors_before_it_is_stacked() -> None:
    launch = Launch(threads=512, blocks_per_multiprocessor=4, flight=4)
    reads = 100 * 512  # of 16 bytes: one a thread in 100 blocks, or four a thread in 25
    assert launch.blocks(reads * 4, 4, H200) == 100
    assert launch.blocks(reads * 4 * 3, 4, H200) == H200
    assert launch.blocks(reads * 4 * 8, 4, H200) == 200


def test_a_tile_fixes_the_number_of_blocks() -> None:
    launch = Launch(threads=256, tile=2048)
    assert [launch.blocks(count, 4, H200) for count in (1, 2048, 2049, 1 << 30)] == [1, 1, 2, 1 << 19]


def test_blocks_come_in_whole_clusters() -> None:
    launch = Launch(threads=256, blocks_per_multiprocessor=4, flight=4, cluster=8)
    assert launch.blocks(1, 4, H200) == 8
    assert launch.blocks(1 << 33, 4, H200) % 8 == 0


def test_a_launch_needs_one_limit() -> None:
    with pytest.raises(ValueError, match="give one of"):
        Launch(threads=256)


def test_what_was_not_measured_stays_as_the_source_says() -> None:
    launch = Launch(threads=256, max_blocks=7)
    assert tuned("no_such_strategy", launch, "sm_90") is launch
