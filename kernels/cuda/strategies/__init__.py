"""The strategies on a GPU. One of our own is a .cu file in this folder, its leading comment the catalogue text."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.catalog import EXACT, Strategy, claims
from warpfold.kernels.cuda.baselines import baselines
from warpfold.kernels.cuda.strategies.own import OwnStrategy, parse
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS

FOLDER = Path(__file__).parent
FAST = "single_pass"
"""The strategy of our own that "auto" prefers where nothing is summed exactly, and that selects under "exact"."""

CUPY = "cupy"


@cache
def own_strategies() -> Mapping[str, OwnStrategy]:
    """Those written in CUDA C++ here, by name."""
    found = (parse(path) for path in sorted(FOLDER.glob("*.cu")) if not path.stem.startswith(EXACT))
    return MappingProxyType({strategy.name: strategy for strategy in found})


@cache
def cuda_strategies() -> tuple[Strategy, ...]:
    """All of them, `exact` first, then the fast one, peers last. Needs neither CuPy nor a GPU."""
    own = [strategy.row for strategy in own_strategies().values()]
    own.sort(key=lambda row: (row.name != FAST, row.name))
    return (_exact(), *own, _cupy(), *(baseline.row for baseline in baselines().values()))


def _exact() -> Strategy:
    summed = claims((op.name for op in OPS.values() if op.adds), DTYPES)
    chosen = own_strategies()[FAST].row.claims
    selected = frozenset(pair for pair in chosen if not OPS[pair[0]].rounds)
    return Strategy(
        name=EXACT,
        backend="cuda",
        summary="Adds up exactly in fixed point and rounds once at the end: the same bits in any order, on any device.",
        error_bound="correctly rounded",
        claims=summed | selected | claims(("prod",), ("bool",)),
    )


def _cupy() -> Strategy:
    # Not claimed: bfloat16, which CuPy does not reduce; what its 64-bit integers could overflow in.
    floats = ("float16", "float32", "float64")
    narrow = [name for name, row in DTYPES.items() if not row.is_float and row.itemsize <= 4]
    values = [name for name in DTYPES if name != "bfloat16"]
    selections = ("min", "max", "argmin", "argmax", "count_nonzero", "any", "all")
    return Strategy(
        name=CUPY,
        backend="cuda",
        summary="What CuPy's own reductions give, on an array that lies in the GPU's memory as a whole.",
        error_bound="CuPy promises none; any order of additions keeps γ_n Σ|x| in the dtype (float16 adds in float32)",
        claims=claims(("sum", "mean", "prod", "norm1", "sum_squares", "norm2", "norm_inf"), floats)
        | claims(("sum",), narrow)
        | claims(selections, values),
    )
