import pytest

from warpfold.kernels.cuda.compile import compile_unit
from warpfold.kernels.cuda.exact import SHAPES, SumKind, exact_unit
from warpfold.kernels.cuda.profile.run import compiled_kernels
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.ops import OPS


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("sum", SumKind.VALUES),
        ("mean", SumKind.VALUES),
        ("norm1", SumKind.MAGNITUDES),
        ("norm2", SumKind.SQUARES),
        ("var", SumKind.MOMENTS),
        ("dot", SumKind.PRODUCTS),
    ],
)
def test_an_exact_op_of_floats_is_one_kernel_with_what_the_compiler_says_of_it(op: str, kind: SumKind) -> None:
    dtype = DTYPES["float32"]
    (kernel,) = compiled_kernels("exact", OPS[op], dtype, "sm_90")
    rows = {row.kernel: row for row in compile_unit(exact_unit(dtype), "sm_90").resources}
    shape = SHAPES["float32"][kind]
    assert kernel.registers == rows[kernel.name].registers
    assert (kernel.threads, kernel.dynamic_shared) == (shape.threads, shape.threads * shape.shared)


def test_sums_of_integers_are_kernels_of_the_fast_strategy() -> None:
    names = [kernel.name for kernel in compiled_kernels("exact", OPS["var"], DTYPES["int32"], "sm_90")]
    assert names == ["single_pass<Sum<int32>>", "single_pass<SumSquares<int32>>"]


def test_what_there_is_not_says_why() -> None:
    with pytest.raises(InvalidInput, match="does not compute"):
        compiled_kernels("two_pass", OPS["dot"], DTYPES["float32"], "sm_90")
    with pytest.raises(Unavailable, match="is a peer"):
        compiled_kernels("cupy", OPS["sum"], DTYPES["float32"], "sm_90")
    with pytest.raises(Unavailable, match="needs sm_90"):
        compiled_kernels("cluster", OPS["sum"], DTYPES["float32"], "sm_80")
