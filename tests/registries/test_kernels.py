"""Every op, dtype, strategy and distribution answers the questions that all must answer.

A failure names what is missing: this file is the list of what a new row of `kernels/` needs.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from warpfold.client import local
from warpfold.kernels import cuda
from warpfold.kernels.aggregates.by_name import AGGREGATES
from warpfold.kernels.catalog import (
    NOT_BY_KEY_ON_GPU,
    grouped_backends,
    keyed_backends,
    strategies,
)
from warpfold.kernels.cpu.backend import CPU_STRATEGIES
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind
from warpfold.kernels.cuda.strategies.partial_results import reduction_of
from warpfold.kernels.cuda.strategies.registry import cuda_strategies, own_strategies
from warpfold.kernels.cuda.strategies.rows import FAST
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.generate import DISTRIBUTIONS, Distribution, generate
from warpfold.kernels.ops import OPS, Finish, NanPolicy, Op, Terms, reference, sums_of
from warpfold.kernels.ops.operands import Operands
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.strategy import EXACT

INCLUDE = Path(cuda.__file__).parent / "include"
REDUCTIONS = (INCLUDE / "reductions.cuh").read_text(encoding="utf-8")
ELEMENTS = (INCLUDE / "elements.cuh").read_text(encoding="utf-8")


def lacking(what: str, missing: object) -> str:
    return f"no {what} for {missing}"


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
class TestAnOp:
    def test_says_how_its_total_is_finished(self, op: Op) -> None:
        assert (op.finish in (Finish.VARIANCE, Finish.DEVIATION)) == (op.terms is Terms.MOMENTS)
        assert not op.ddof or op.terms in (Terms.MOMENTS, Terms.TOTALS)
        several = op.terms is Terms.TOTALS
        assert several == (op.finish is Finish.OF_TOTALS) == bool(op.totals) == (op.exact is not None)
        assert op.limit is None or op.limit in op.totals
        assert op.finish is Finish.ITSELF or op.adds, "only a total is divided or has its root taken"
        assert not op.adds or op.rounds, "a total of floats is rounded"

    def test_has_a_definition_that_the_exact_strategy_gives_the_value_of(self, op: Op) -> None:
        array = np.array([3, 1, -2, -2], dtype=np.int8)
        elements = (DTYPES["int8"], array.view(np.uint8).tolist())
        if op.sources == 2:
            answer = reference.of_pairs(op, elements, elements, NanPolicy.PROPAGATE)
        else:
            answer = reference.reduce(op, *elements, NanPolicy.PROPAGATE)
        assert isinstance(answer, reference.Answer), lacking("definition in kernels/ops/reference.py", op.name)
        value = local.reduce(array, op.name, other=array if op.sources == 2 else None).value
        assert answer.value == value, (
            f"kernels/ops/reference.py defines {op.name} otherwise than its row in kernels/ops/table.py"
        )

    def test_is_computed_exactly_on_a_cpu(self, op: Op) -> None:
        for name in sums_of(op):
            row = OPS[name]
            assert row.adds or row.fold in AGGREGATES, lacking(f"aggregate {row.fold!r} in kernels/aggregates", op.name)
        assert CPU_STRATEGIES[EXACT].computes(op, DTYPES["int8"]), lacking(
            "claim of the exact strategy on a CPU", op.name
        )

    def test_is_computed_by_numpy_where_numpy_has_a_function_of_its_name(self, op: Op) -> None:
        claimed = {name for name, _ in CPU_STRATEGIES["numpy"].claims}
        of_numpy = op.name in claimed or op.terms is Terms.TOTALS or not hasattr(np, op.name)
        assert of_numpy, lacking("call of NumPy", op.name)

    def test_is_computed_on_a_gpu(self, op: Op) -> None:
        claimed = {name for name, _ in cuda_strategies()[EXACT].claims | own_strategies()[FAST].claims}
        if op.keeps:  # by key they need a CPU so far, and all that places or refuses jobs says so
            assert op.name in NOT_BY_KEY_ON_GPU
            assert keyed_backends(op, None) == ("cpu",)
        lacks = not op.multiplies and "cuda" not in grouped_backends(op, None)
        assert (set(sums_of(op)) <= claimed) != lacks, lacking("claim of a strategy of ours on a GPU", op.name)

    def test_has_a_reduction_of_every_dtype_that_a_strategy_of_ours_claims_it_for(self, op: Op) -> None:
        for strategy in own_strategies().values():
            for dtype in (dtype for name, dtype in strategy.claims if name == op.name):
                template = reduction_of(op, DTYPES[dtype])
                assert re.search(rf"struct {template}\b", REDUCTIONS), lacking(f"{template} in reductions.cuh", op.name)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
class TestADtype:
    def test_has_an_element_type_in_cuda(self, dtype: DType) -> None:
        match = re.search(rf"(using|struct) {element(dtype)}\b", ELEMENTS)
        assert match, lacking("element type in cuda/include/elements.cuh", dtype.name)

    def test_has_its_format_and_its_conversions_in_cuda(self, dtype: DType) -> None:
        assert re.search(rf"\bwiden\({element(dtype)} x\)", ELEMENTS), lacking("widen in elements.cuh", dtype.name)
        if not dtype.is_float:
            return
        row = re.search(rf"struct Format<{dtype.name}> : FloatFormat<uint(\d+), (\d+), (\d+)>", ELEMENTS)
        assert row is not None, lacking("format in elements.cuh", dtype.name)
        assert tuple(map(int, row.groups())) == (8 * dtype.itemsize, dtype.precision, dtype.max_exponent)
        for name in ("round_to", "set_bits"):
            assert re.search(rf"\b{name}\({dtype.name}& out,", ELEMENTS), lacking(f"{name} in elements.cuh", dtype.name)

    def test_has_launch_shapes_of_its_exact_sums_if_it_is_a_float(self, dtype: DType) -> None:
        if dtype.is_float:
            shapes = SHAPES.get(dtype.name, {})
            assert set(shapes) == set(SumKind), lacking("launch shape in cuda/exact/shapes.py", dtype.name)

    def test_is_summed_exactly_on_every_backend(self, dtype: DType) -> None:
        for backend, rows in (("cpu", CPU_STRATEGIES), ("cuda", cuda_strategies())):
            assert ("sum", dtype.name) in rows[EXACT].claims, lacking(f"exact sum on {backend}", dtype.name)

    def test_is_generated(self, dtype: DType) -> None:
        able = [row.name for row in DISTRIBUTIONS.values() if dtype.name in row.dtypes]
        assert {"constant", "zeros", "arange", "uniform"} <= set(able), lacking("distribution", dtype.name)


class TestAStrategy:
    def test_says_what_it_is_and_what_may_be_lost(self) -> None:
        for row in strategies():
            assert row.backend in ("cpu", "cuda")
            assert len(row.summary) > 20, lacking("summary", row.name)
            assert row.error_bound, lacking("error bound", row.name)
            assert row.claims, lacking("claim", row.name)

    @pytest.mark.parametrize("name", CPU_STRATEGIES)
    def test_of_a_cpu_computes_what_it_claims(self, name: str) -> None:
        row = CPU_STRATEGIES[name]
        for op, dtype in sorted(row.claims):
            source = ArraySource(np.ones(3, dtype=DTYPES[dtype].numpy))
            other = source if OPS[op].sources == 2 else None
            reduction = row.reduce(Operands(source, other), OPS[op], NanPolicy.PROPAGATE, None)
            assert (reduction.op, reduction.count, reduction.strategy) == (op, 3, row.name)

    @pytest.mark.parametrize("name", cuda_strategies())
    def test_of_a_gpu_plans_its_kernels_or_says_why_not(self, name: str) -> None:
        strategy = cuda_strategies()[name]
        for op, dtype in sorted(strategy.claims):
            # These launch the kernels of other ops, or of CuPy.
            none = OPS[op].fold in ("count", "span", "distinct", "mode") or op in ("first", "last", "nth")
            if strategy.needs_whole or (OPS[op].sources == 2 and not DTYPES[dtype].is_float) or none:
                with pytest.raises(Unavailable):
                    strategy.planned(OPS[op], DTYPES[dtype], "sm_90")
                continue
            planned = strategy.planned(OPS[op], DTYPES[dtype], "sm_90")
            assert planned, lacking("kernel", f"{op} of {dtype} by {name}")
            assert all(kernel.name in kernel.unit.kernels for kernel in planned)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_a_distribution_fills_every_dtype_that_it_names(distribution: Distribution) -> None:
    for dtype in distribution.dtypes:
        period = (
            {"m": 2.0} if any(parameter.name == "m" for parameter in distribution.parameters) else {}
        )  # of two truth values
        source = GeneratedSource(distribution.name, 2, 1, DTYPES[dtype], period)
        assert generate(source, 0, 2).dtype == DTYPES[dtype].numpy, lacking("formula", distribution.name)
