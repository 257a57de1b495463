"""The compile matrix leaves nothing out."""

import pytest

from warpfold.kernels.cuda.compile import ARCHITECTURES
from warpfold.kernels.cuda.matrix import cells, matrix
from warpfold.kernels.cuda.staging.generator import generator_unit
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.cuda.strategies.rows import FOLDER
from warpfold.kernels.dtypes import DTYPES

SINCE = {name: own.needs for name, own in own_strategies().items()}


def pairs(arch: str, *, whole: bool) -> set[tuple[str, str, str]]:
    """(strategy, op, dtype) that the cells of an architecture hold."""
    names = set()
    for cell in cells(arch, whole=whole):
        name, _, dtype = cell.label.partition(" ")
        if name in own_strategies():
            names |= {(name, op, of) for op, of in own_strategies()[name].claims if of == dtype}
    return names


def test_everything_claimed_is_compiled_for_the_main_architecture() -> None:
    claimed = {(name, *pair) for name, own in own_strategies().items() for pair in own.claims}
    assert pairs("sm_90", whole=True) == claimed


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_strategy_op_and_dtype_is_in_the_part_of_each_architecture(arch: str) -> None:
    part = pairs(arch, whole=False)
    assert {name for name, _, _ in part} == {name for name, own in own_strategies().items() if own.runs_on(arch)}
    assert {op for _, op, _ in part} == {op for row in own_strategies().values() for op, _ in row.claims}
    assert {dtype for _, _, dtype in part} == set(DTYPES)
    assert len(part) < len(pairs(arch, whole=True)) / 2


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_source_is_in_the_part_of_each_architecture(arch: str) -> None:
    everything = {cell.unit.source for cell in cells(arch, whole=True)}
    assert {cell.unit.source for cell in cells(arch, whole=False)} == everything


def test_the_parts_of_all_architectures_together_hold_every_unit() -> None:
    strategies = {own.source for own in own_strategies().values()}
    units = {cell.unit for cell in cells("sm_90", whole=True) if cell.unit.source not in strategies}
    assert {cell.unit for arch in ARCHITECTURES for cell in cells(arch, whole=False)} >= units


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_generator_has_every_distribution_of_a_dtype(dtype: str) -> None:
    assert len(generator_unit(DTYPES[dtype]).kernels) == (10 if DTYPES[dtype].is_float else 5)


def test_every_cuda_source_of_the_package_is_in_the_matrix() -> None:
    compiled = {cell.unit.source.name for cell in matrix("all")}
    peers = {"peers.cu", "shaped_peers.cu"}  # built by nvcc with the toolkit's headers
    assert compiled == {path.name for path in FOLDER.parent.rglob("*.cu")} - peers


def test_ci_takes_all_of_one_architecture_and_a_part_of_each_other() -> None:
    by_arch = {arch: [cell for cell in matrix("ci") if cell.arch == arch] for arch in ARCHITECTURES}
    assert by_arch["sm_90"] == matrix("sm_90")
    assert all(0 < len(chosen) < len(matrix(arch)) for arch, chosen in by_arch.items() if arch != "sm_90")
    assert len(matrix("all")) == sum(len(matrix(arch)) for arch in ARCHITECTURES)


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown architecture 'sm_42'"):
        matrix("sm_90,sm_42")
