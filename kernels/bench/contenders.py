"""Which strategies a benchmark measures by shape: the exact one, and peers on the same backend. Imports no device
library; `host/shaped.py` and `kernels/cuda/bench/shaped.py` run them."""

from dataclasses import dataclass

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.strategy import EXACT
from warpfold.kernels.studies.shapes import By

SUMS = ("sum", "mean")
OF_HOSTS = (*SUMS, "min", "max")
FLOATS = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class Contender:
    """A strategy on a backend, what it makes values by, and the ops that it computes so, of float32 and float64.
    `axes` are those along which it reduces matrices."""

    strategy: str
    backend: str
    by: By
    ops: tuple[str, ...]
    axes: tuple[int, ...] = (0, 1)


CONTENDERS: tuple[Contender, ...] = (
    Contender(EXACT, "cpu", By.AXIS, OF_HOSTS),
    Contender("numpy", "cpu", By.AXIS, OF_HOSTS),
    Contender(EXACT, "cpu", By.SEGMENTS, OF_HOSTS),
    Contender("numpy", "cpu", By.SEGMENTS, ("sum", "min", "max")),
    Contender(EXACT, "cpu", By.KEYS, OF_HOSTS),
    Contender("numpy", "cpu", By.KEYS, ("sum",)),
    Contender("polars", "cpu", By.KEYS, OF_HOSTS),
    Contender("pyarrow", "cpu", By.KEYS, OF_HOSTS),
    Contender(EXACT, "cuda", By.AXIS, SUMS),
    Contender("torch", "cuda", By.AXIS, SUMS),
    Contender("cupy", "cuda", By.AXIS, SUMS),
    Contender("cub", "cuda", By.AXIS, ("sum",), (1,)),
    Contender(EXACT, "cuda", By.SEGMENTS, SUMS),
    Contender("torch", "cuda", By.SEGMENTS, SUMS),
    Contender("cub", "cuda", By.SEGMENTS, ("sum",)),
    Contender(EXACT, "cuda", By.KEYS, SUMS),
    Contender("torch", "cuda", By.KEYS, ("sum",)),
    Contender("cupy", "cuda", By.KEYS, ("sum",)),
    Contender("cub", "cuda", By.KEYS, ("sum",)),
)


def contender_names() -> tuple[str, ...]:
    """The names of all strategies that are measured for some shape, each once."""
    return tuple(dict.fromkeys(row.strategy for row in CONTENDERS))


def contenders(by: By, backend: str | None = None) -> tuple[Contender, ...]:
    """The contenders that make values by `by`, on one backend or on any."""
    return tuple(row for row in CONTENDERS if row.by is by and backend in (None, row.backend))


def contender(strategy: str, backend: str, by: By, op: str, dtype: str, axis: int | None = None) -> Contender:  # noqa: PLR0917
    """The row of this strategy. Raises InvalidInput naming "strategy" where it does not compute that."""
    for row in contenders(by, backend):
        if row.strategy != strategy:
            continue
        if op not in row.ops or dtype not in FLOATS:
            known = f"{', '.join(row.ops)} of {' and '.join(FLOATS)}"
            raise InvalidInput(f"by {by} {strategy} is measured for {known}, not for {op} of {dtype}", "strategy")
        if axis is not None and axis not in row.axes:
            raise InvalidInput(f"{strategy} does not reduce along axis {axis}", "strategy")
        return row
    raise InvalidInput(f"strategy {strategy!r} is not measured by {by} on backend {backend!r}", "strategy")
