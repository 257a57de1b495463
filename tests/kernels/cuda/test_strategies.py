"""The catalogue of CUDA strategies is what their sources say."""

import re
from pathlib import Path

import pytest

from warpfold.kernels.catalog import backends_for, grouped_backends, resolve
from warpfold.kernels.cuda.strategies.comment import SourceError
from warpfold.kernels.cuda.strategies.own import own_strategy
from warpfold.kernels.cuda.strategies.registry import baselines, cuda_strategies, own_strategies
from warpfold.kernels.cuda.strategies.rows import CUPY, FAST, FOLDER
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS
from warpfold.kernels.strategy import EXACT

GOOD = """// Adds things
// up.
//
// launch: threads=64 max_blocks=8
// needs: sm_90
// ops: sum, mean
// dtypes: float
// ops: all
// dtypes: uint8, bool
// error: none
#include "block.cuh"
template <class R> __global__ void adding(int) {}
template <class R> __global__ void adding_fold(int) {}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "adding.cu"
    path.write_text(text)
    return path


def test_a_source_describes_its_strategy(tmp_path: Path) -> None:
    strategy = own_strategy(written(tmp_path, GOOD))
    floats = {"float16", "bfloat16", "float32", "float64"}
    assert (strategy.name, strategy.backend, strategy.summary) == ("adding", "cuda", "Adds things up.")
    assert strategy.error_bound == "none"
    sums = {(op, dtype) for op in ("sum", "mean") for dtype in floats}
    assert strategy.claims == sums | {("all", "uint8"), ("all", "bool")}
    assert (strategy.launch.threads, strategy.launch.max_blocks, strategy.needs) == (64, 8, 90)
    assert (strategy.begins, strategy.folds) == (False, True)
    assert [strategy.runs_on(arch) for arch in ("sm_89", "sm_90", "sm_120")] == [False, True, True]


@pytest.mark.parametrize(
    ("group", "ops"),
    [
        ("sums", {"sum", "mean", "norm1", "sum_squares", "norm2"}),
        ("selections", {"min", "max", "argmin", "argmax", "norm_inf"}),
        ("tests", {"count_nonzero", "any", "all"}),
    ],
)
def test_a_source_may_claim_a_group_of_ops(tmp_path: Path, group: str, ops: set[str]) -> None:
    strategy = own_strategy(written(tmp_path, GOOD.replace("// ops: sum, mean", f"// ops: {group}")))
    claimed = {op for op, dtype in strategy.claims if dtype == "float32"}
    assert ops <= claimed
    assert not claimed & {"prod", "dot", "var", "std"}


def test_its_kernels_are_named_by_reduction_and_element(tmp_path: Path) -> None:
    strategy = own_strategy(written(tmp_path, GOOD))
    assert strategy.kernels("Sum", DTYPES["float16"]) == ("adding<Sum<float16>>", "adding_fold<Sum<float16>>")
    # sum and mean share one reduction
    assert strategy.unit(DTYPES["float16"]).kernels == strategy.kernels("Sum", DTYPES["float16"])
    assert strategy.unit(DTYPES["bool"]).kernels == strategy.kernels("CountNonzero", DTYPES["bool"])


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("// error: none\n", "", "0 lines begin with '// error:'"),
        ("// launch:", "// starts:", "0 lines begin with '// launch:'"),
        ("threads=64", "threads=48", "multiple of 32"),
        ("threads=64", "fibres=64", "no 'fibres'"),
        ("max_blocks=8", "max_blocks=8 tile=4", "one of max_blocks"),
        ("// dtypes: float\n", "", "must be followed by"),
        ("sum, mean", "sum, median", "no op or group 'median' with"),
        ("sum, mean", "sum, var", "no op or group 'var' with a reduction"),
        ("uint8, bool", "uint8, quad", "no dtype or kind 'quad'"),
        ("//\n", "", "not in list"),
    ],
)
def test_a_source_that_does_not_say_all_is_refused(tmp_path: Path, old: str, new: str, fault: str) -> None:
    with pytest.raises(SourceError, match=r"adding\.cu: ") as caught:
        own_strategy(written(tmp_path, GOOD.replace(old, new)))
    assert fault in str(caught.value)


def test_every_source_of_the_folder_is_in_the_catalogue() -> None:
    names = {path.stem for path in FOLDER.glob("*.cu")}
    assert names == set(own_strategies())
    assert names | {EXACT, CUPY, *baselines()} == set(cuda_strategies())


def test_names_are_unique_and_texts_are_there() -> None:
    for name, row in cuda_strategies().items():
        assert row.name == name
        assert row.backend == "cuda"
        assert len(row.summary) > 40
        assert row.error_bound
        assert row.claims
        assert all(op in OPS and dtype in DTYPES for op, dtype in row.claims)


def test_every_pair_that_can_be_reduced_without_unbounded_integers_is_computed() -> None:
    rows = cuda_strategies().values()
    missing = {
        (op.name, name)
        for op in OPS.values()
        for name, dtype in DTYPES.items()
        if (op.multiplies or "cuda" in grouped_backends(op, dtype)) and not any(row.computes(op, dtype) for row in rows)
    }
    assert missing == {("prod", name) for name, row in DTYPES.items() if row.kind in ("int", "uint")}


def test_ops_of_two_sources_or_two_accumulators_are_exact_or_nothing() -> None:
    claimed = {row.name for row in cuda_strategies().values() for op, _ in row.claims if op in ("dot", "var", "std")}
    assert claimed == {EXACT}
    for op in ("dot", "var", "std"):
        assert backends_for(OPS[op], DTYPES["float32"], "auto") == ("cpu", "cuda")
    with pytest.raises(InvalidInput, match="does not compute var of float32"):
        resolve(OPS["var"], DTYPES["float32"], FAST, "cuda")


def test_auto_prefers_exact_then_the_fast_one() -> None:
    assert resolve(OPS["sum"], DTYPES["float32"], "auto", "cuda") == EXACT
    assert resolve(OPS["prod"], DTYPES["float32"], "auto", "cuda") == FAST


@pytest.mark.parametrize("name", own_strategies())
def test_the_launch_line_says_how_many_reads_the_source_keeps_in_flight(name: str) -> None:
    strategy = own_strategies()[name]
    flights = re.findall(r"fold_vectors<\w+, (\d+)[,>]", strategy.source.read_text())
    assert [int(flight) for flight in flights] == [strategy.launch.flight] * bool(strategy.launch.flight)


@pytest.mark.parametrize("name", own_strategies())
def test_the_launch_line_keeps_the_bounds_that_the_kernel_is_compiled_for(name: str) -> None:
    strategy = own_strategies()[name]
    bounds = re.findall(r"__launch_bounds__\((\w+)", strategy.source.read_text())
    constants = dict(re.findall(r"(\w+) = (\d+)", strategy.source.read_text()))
    assert bounds
    assert {int(constants.get(bound, bound)) for bound in bounds} == {strategy.launch.threads}
