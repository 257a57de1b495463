"""The places of ranks on GPUs, as far as they are known without a GPU, and the work that a gang gives its members."""

from dataclasses import replace
from decimal import Decimal
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support import array_files
from warpfold.kernels.backend import Device, Progress
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.scaling.placement import CudaPlacement, Gang
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import NullPolicy, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.query import Answer, Query, Shaped
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.source import ArraySource

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


class MemberOfTest(CpuBackend):
    """A member of a gang that is a CPU, which says what it was asked for."""

    def __init__(self, index: int, opened: "list[MemberOfTest]") -> None:
        super().__init__(8 << 20)
        self.index, self.shapes, self.emptied = index, list[tuple[int, ...]](), 0
        opened.append(self)

    def most(self, query: object) -> int:
        return 100 + self.index

    def at_once(self) -> Backend:
        return self

    def empty_pool(self) -> None:
        self.emptied += 1

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        if isinstance(query, Shaped):
            self.shapes.append(query.shape)
        return super().aggregate(query, progress)


def gang_of(count: int, opened: list[MemberOfTest]) -> Gang:
    return Gang([replace(GPU, index=index) for index in range(count)], lambda index: MemberOfTest(index, opened))


def test_a_gang_shares_the_blocks_of_a_reduction_and_gives_the_bits_of_one_device() -> None:
    opened: list[MemberOfTest] = []
    gang = gang_of(3, opened)
    array = np.random.default_rng(1).standard_normal((60, 20))
    assert (gang.device.name, opened) == ("3 × NVIDIA H200", [])
    for grouping in (AlongAxes((1,)), AlongAxes((0,)), Segments(length=7)):
        made = gang.reduce_groups(ArraySource(array), array.shape, grouping, "sum")
        whole = CpuBackend(8 << 20).reduce_groups(ArraySource(array), array.shape, grouping, "sum")
        assert (made.listed(), made.shape, made.counted()) == (whole.listed(), whole.shape, whole.counted())
    gang.job_over()
    assert [(member.index, member.emptied) for member in opened] == [(0, 1), (1, 1), (2, 1)], "members stay open"
    shapes = [shape for member in opened for shape in member.shapes]
    assert max(map(prod, shapes)) <= 100, "the smallest member sets the size of blocks"
    assert sum(map(prod, shapes)) == 3 * array.size


def test_a_gang_gives_the_durations_that_one_device_gives(tmp_path: Path) -> None:
    gang = gang_of(2, [])
    np.save(tmp_path / "d.npy", np.arange(-60, 60, dtype="m8[s]").reshape(6, 20))
    made, whole = (
        on.reduce_groups(array_files.opened(tmp_path, "d.npy"), (6, 20), AlongAxes((1,)), "sum")
        for on in (gang, CpuBackend(8 << 20))
    )
    assert made.times is not None
    assert (made.times, made.listed(), made.dtype) == (whole.times, whole.listed(), "duration[s]")


@pytest.mark.parametrize("null_policy", [NullPolicy.OMIT, NullPolicy.PROPAGATE])
def test_a_gang_shares_rows_and_gives_the_groups_of_one_device(null_policy: NullPolicy) -> None:
    opened: list[MemberOfTest] = []
    gang, random = gang_of(2, opened), np.random.default_rng(2)
    values = pa.array(random.standard_normal(500), mask=random.random(500) < 0.2)
    prices = pa.array([None if number % 7 == 0 else Decimal(number) / 100 for number in range(500)])
    table = pa.table({"k": random.integers(0, 9, 500), "x": values, "price": prices})
    wanted = [Wanted(name, name, name) for name in ("k", "x", "price")]
    rows = keyed_frame(frame_of(table), wanted[:1], wanted[1:], refuse_nulls=False, meant=True)
    asked = [Aggregation(op_named(op), number, f"{op} {number}") for op in ("sum", "max", "mean") for number in (0, 1)]
    plan = GroupPlan(tuple(asked), null_policy=null_policy)
    made, whole = (on.group_by(rows, plan) for on in (gang, CpuBackend(8 << 20)))
    assert made.table().equals(whole.table())
    assert [column.words for column in made.columns] == [column.words for column in whole.columns]


def test_a_gang_refuses_what_no_gpu_computes_before_it_opens_one() -> None:
    opened: list[MemberOfTest] = []
    gang, source = gang_of(2, opened), ArraySource(np.ones((4, 4)))
    with pytest.raises(InvalidInput, match="prod of float64 needs the backend"):
        gang.reduce_groups(source, (4, 4), AlongAxes((0,)), "prod")
    with pytest.raises(InvalidInput, match="max"):
        gang.reduce_groups(source, (4, 4), AlongAxes((0,)), "max", states=True)
    rows = keyed_arrays([("k", ArraySource(np.zeros(4, np.int32)), "by.0")], [("x", ArraySource(np.ones(4)), "x")])
    with pytest.raises(InvalidInput, match="products of numbers: prod of float64 needs the backend"):
        gang.group_by(rows, GroupPlan((Aggregation(op_named("prod"), 0, "x"),)))
    with pytest.raises(Unavailable, match="a reduction to one value runs on one GPU"):
        gang.reduce(source, "sum")
    assert opened == []
