"""The model's bits against scalar float32 additions written out, and against the published values."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.compile import compile_unit
from warpfold.kernels.cuda.puzzles import SIZES, puzzle_unit
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.puzzles import Check, ClusterShape, Puzzle, Solution, checks, solve
from warpfold.kernels.puzzles.puzzle import elements
from warpfold.kernels.puzzles.solve import model

F = np.float32
SHAPES = (
    ClusterShape(),
    ClusterShape(1000, 256, 4),
    ClusterShape(32, 32, 1),
    ClusterShape(1, 64, 3),
    ClusterShape(8000, 1024, 8),
    ClusterShape(16_384, 1024, 16),
    ClusterShape(1791, 256, 7),
)


@pytest.fixture(scope="module")
def backend() -> Iterator[CpuBackend]:
    opened = CpuBackend()
    yield opened
    opened.close()


def one_by_one(values: list[np.float32]) -> np.float32:
    total = F(0)
    for value in values:
        total = F(total + value)
    return total


def block(puzzle: Puzzle, shape: ClusterShape, rank: int) -> list[np.float32]:
    sums = elements(puzzle, shape)
    scale = F(1) if puzzle is Puzzle.REDUCTION else F(rank + 1)
    first = rank * shape.threads
    return [F(sums[i] * scale) if i < shape.size else F(0) for i in range(first, first + shape.threads)]


def halved(values: list[np.float32]) -> np.float32:
    stride = len(values) // 2
    while stride:
        for k in range(stride):
            values[k] = F(values[k] + values[k + stride])
        stride //= 2
    return values[0]


def expected(puzzle: Puzzle, shape: ClusterShape) -> list[np.float32]:
    blocks = [block(puzzle, shape, rank) for rank in range(shape.cluster_size)]
    match puzzle:
        case Puzzle.COORDINATION:
            return [one_by_one(values) for values in blocks]
        case Puzzle.REDUCTION:
            return [one_by_one([halved(values) for values in blocks])]
        case Puzzle.ADVANCED:
            warps = [[one_by_one(v[k : k + 32]) for k in range(0, len(v), 32)] for v in blocks]
            return [one_by_one(sums) for sums in warps]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("puzzle", Puzzle)
def test_the_model_makes_the_same_additions_in_the_same_order(puzzle: Puzzle, shape: ClusterShape) -> None:
    assert model(puzzle, shape).tobytes() == np.array(expected(puzzle, shape)).tobytes()


def test_the_published_values_come_out_to_the_bit() -> None:
    assert model(Puzzle.REDUCTION, ClusterShape()).tolist() == [523776.0]
    published = np.array(["122.799995", "247.04001", "372.72", "499.83997"]).astype(F)
    assert model(Puzzle.ADVANCED, ClusterShape()).tobytes() == published.tobytes()
    assert [str(value) for value in model(Puzzle.ADVANCED, ClusterShape())] == [
        "122.799995",
        "247.04001",
        "372.72",
        "499.83997",
    ]


def test_inputs_are_multiplied_in_float32() -> None:
    sums = elements(Puzzle.ADVANCED, ClusterShape())
    assert sums[49] == F(F(49) * F(0.02))
    assert sums[:50].tobytes() == sums[50:100].tobytes()
    assert elements(Puzzle.COORDINATION, ClusterShape())[13] == F(F(3) * F(0.1))
    assert elements(Puzzle.REDUCTION, ClusterShape()).tolist() == list(range(1024))


@pytest.mark.parametrize("puzzle", Puzzle)
def test_a_cpu_says_that_its_answer_is_a_model(backend: CpuBackend, puzzle: Puzzle) -> None:
    solution = solve(backend, puzzle, ClusterShape())
    assert solution.model
    assert solution.why_model == "a CPU has no clusters"
    assert solution.values == tuple(float(value) for value in model(puzzle, ClusterShape()))
    assert all(check.passed for check in checks(solution))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("puzzle", Puzzle)
def test_every_shape_passes_its_checks(backend: CpuBackend, puzzle: Puzzle, shape: ClusterShape) -> None:
    assert [check for check in checks(solve(backend, puzzle, shape)) if not check.passed] == []


@pytest.mark.parametrize(
    ("puzzle", "values"),
    [
        (Puzzle.COORDINATION, (1.0, 3.0, 2.0, 4.0)),
        (Puzzle.COORDINATION, (1.0, 2.0, 3.0, float("nan"))),
        (Puzzle.ADVANCED, (0.0, 1.0, 2.0, 3.0)),
        (Puzzle.REDUCTION, (523777.0,)),
        (Puzzle.REDUCTION, (float("nan"),)),
    ],
)
def test_a_wrong_answer_fails_a_check(puzzle: Puzzle, values: tuple[float, ...]) -> None:
    wrong = Solution(puzzle, ClusterShape(), values, False, "a GPU", 0.1)
    assert any(not check.passed for check in checks(wrong))


def test_the_checks_name_what_they_test(backend: CpuBackend) -> None:
    (check,) = checks(solve(backend, Puzzle.REDUCTION, ClusterShape()))
    assert check == Check("the sum is 523776", True)


@pytest.mark.parametrize(
    ("field", "size", "threads", "cluster_size"),
    [
        ("size", 1025, 256, 4),
        ("size", 0, 256, 4),
        ("threads", 1024, 255, 8),
        ("threads", 1024, 16, 8),
        ("threads", 1024, 2048, 1),
        ("cluster_size", 1024, 256, 0),
        ("cluster_size", 1024, 256, 9),
        ("cluster_size", 1024, 256, 17),
    ],
)
def test_an_impossible_shape_names_its_field(field: str, size: int, threads: int, cluster_size: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        ClusterShape(size, threads, cluster_size)
    assert caught.value.field == field


@pytest.mark.parametrize("puzzle", Puzzle)
def test_the_kernels_compile_for_every_size_of_a_cluster(puzzle: Puzzle, tmp_path: Path) -> None:
    for arch in ("sm_90", "sm_100"):
        binary = compile_unit(puzzle_unit(puzzle), arch, tmp_path)
        assert len(binary.symbols) == len(SIZES)
        assert all(row.spill_stores == 0 for row in binary.resources)
