"""The strategies on a GPU as rows of the catalogue. They need neither CuPy nor a GPU to be listed."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.baselines.rows import PEER_ROWS
from warpfold.kernels.cuda.strategies.comment import parse_comment
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, Terms
from warpfold.kernels.strategy import EXACT, Strategy, claims

FOLDER = Path(__file__).parent
CUPY = "cupy"
FAST = "single_pass"
"""The strategy of our own that "auto" prefers where nothing is summed exactly, and that selects under "exact"."""


@cache
def own_rows() -> Mapping[str, Strategy]:
    """The strategies that are written in CUDA C++ here, by name, the fast one first."""
    rows = [own_row(path) for path in sorted(FOLDER.glob("*.cu"))]
    return MappingProxyType({row.name: row for row in sorted(rows, key=lambda row: (row.name != FAST, row.name))})


def own_row(path: Path) -> Strategy:
    """The strategy in `path`. Raises SourceError naming the file and what is wrong with its comment."""
    comment = parse_comment(path.name, path.read_text(encoding="utf-8"))
    return Strategy(
        name=path.stem,
        backend="cuda",
        summary=comment.summary,
        error_bound=comment.error_bound,
        claims=comment.claims,
    )


def exact_row() -> Strategy:
    """The correctly rounded value. Its ops that look for extremes, or test elements, are those of the fast strategy."""
    summed = claims((op.name for op in OPS.values() if op.adds and op.terms is not Terms.TOTALS), DTYPES)
    ordered = claims((op.name for op in OPS.values() if op.ranks), DTYPES)
    selected = frozenset(pair for pair in own_rows()[FAST].claims if not OPS[pair[0]].rounds)
    return Strategy(
        name=EXACT,
        backend="cuda",
        summary="Adds up exactly in fixed point and rounds once at the end: the same bits in any order, on any device.",
        error_bound="correctly rounded",
        claims=summed | ordered | selected | claims(("prod",), ("bool",)),
    )


# Two things are not claimed: bfloat16, which CuPy does not reduce, and ops in which its 64-bit integers could overflow.
# Whether CuPy is installed is seen when a GPU is opened.
CUPY_ROW = Strategy(
    name=CUPY,
    backend="cuda",
    summary="What CuPy's own reductions give, on an array that lies in the GPU's memory as a whole.",
    error_bound="CuPy promises none; any order of additions keeps γ_n Σ|x| in the dtype (float16 adds in float32)",
    claims=claims(
        ("sum", "mean", "prod", "norm1", "sum_squares", "norm2", "norm_inf"), ("float16", "float32", "float64")
    )
    | claims(("sum",), [name for name, row in DTYPES.items() if not row.is_float and row.itemsize <= 4])
    | claims(
        ("min", "max", "argmin", "argmax", "count_nonzero", "any", "all"),
        [name for name in DTYPES if name != "bfloat16"],
    ),
)


def cuda_rows() -> tuple[Strategy, ...]:
    """All strategies on a GPU: `exact` first, then the fast one, peers last."""
    return (exact_row(), *own_rows().values(), CUPY_ROW, *PEER_ROWS)
