"""What a group on GPUs is made of, as far as that is known without one."""

from dataclasses import replace
from functools import partial

import pytest

from warpfold.kernels.backend import Device
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.scaling.placement import CudaPlacement
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.scaling.axes import Algorithm, Mode

GPU = Device("cuda", "NVIDIA H200", 0, 140 << 30, 132, "9.0", "GPU-0", ())


def gpus(count: int) -> CudaPlacement:
    return CudaPlacement([replace(GPU, index=index) for index in range(count)])


def arguments(placement: CudaPlacement, mode: Mode, ranks: int) -> list[tuple[object, ...]]:
    asked = []
    for make_ranks in placement.processes(mode, Algorithm.RING, ranks, 0):
        assert isinstance(make_ranks, partial)
        assert make_ranks.func is CudaRanks
        asked.append(make_ranks.args)
    return asked


def test_one_process_has_all_gpus_and_else_each_its_own() -> None:
    assert arguments(gpus(4), Mode.ONE_PROCESS, 3) == [([0, 1, 2], 0, 3)]
    assert arguments(gpus(4), Mode.PROCESS_PER_RANK, 3) == [([0], 0, 3), ([1], 1, 3), ([2], 2, 3)]
    assert arguments(gpus(4), Mode.PROCESS_PER_RANK, 1) == [([0], 0, 1)]


def test_a_single_gpus_slot_uses_that_gpu() -> None:
    assert arguments(CudaPlacement([replace(GPU, index=5)]), Mode.ONE_PROCESS, 1) == [([5], 0, 1)]


@pytest.mark.parametrize(
    ("algorithm", "value"), [(Algorithm.AUTO, None), (Algorithm.RING, "Ring"), (Algorithm.TREE, "Tree")]
)
def test_the_algorithm_is_said_in_the_environment_and_nvlink_sharp_stays_off(
    algorithm: Algorithm, value: str | None
) -> None:
    assert gpus(2).environment(algorithm) == {"NCCL_ALGO": value, "NCCL_NVLS_ENABLE": "0"}


def test_there_are_no_more_ranks_than_an_exact_sum_has_room_for() -> None:
    assert gpus(8).available == 8
    assert gpus(64).available == MOST_GPUS


def test_a_message_has_room_to_be_sent_received_and_checked() -> None:
    assert gpus(2).room(2) * 3 < GPU.memory_bytes
    assert gpus(2).memory(2) == 2 * GPU.memory_bytes
