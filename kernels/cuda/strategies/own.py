"""A strategy of our own, as its CUDA source describes it.

The leading comment of the file is the catalogue's summary. Its last lines are

    // launch: threads=256 max_blocks=1024      the shape, see `kernels.cuda.strategies.tuning.Launch`
    // needs: sm_90                             optional: the first architecture that can run it
    // ops: sum, mean                           with the line after: the pairs it claims; may be repeated
    // dtypes: float, int32                     names, kinds (float, int, uint, bool), or * for all
    // error: γ_n Σ|x|                          what may be lost

The kernel bears the name of the file, as a template over a reduction (`include/reductions.cuh`), and takes (data,
count, first index, omit NaN, partials, state, outcome); the state is 48 bytes a block, all 0, to be left 0. A kernel
NAME_begin prepares the first partial before it, a kernel NAME_fold (partials, count, folded, outcome) folds partials
after it until one is left.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from warpfold.kernels.catalog import Strategy, claims
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.strategies.reductions import element, reduction_of
from warpfold.kernels.cuda.strategies.tuning import Launch
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import OPS


class SourceError(ValueError):
    """A strategy's leading comment does not say what it must."""


@dataclass(frozen=True, slots=True)
class OwnStrategy:
    """A catalogue row with its source. `needs` is the first architecture that can run it, 0 for any: 90 for sm_90."""

    row: Strategy
    source: Path
    launch: Launch
    needs: int
    begins: bool
    folds: bool

    @property
    def name(self) -> str:
        return self.row.name

    def runs_on(self, arch: str) -> bool:
        """Whether chips of `arch` ("sm_90") have what it needs."""
        return int(arch.removeprefix("sm_")) >= self.needs

    def kernels(self, reduction: str, dtype: DType) -> tuple[str, ...]:
        """The names of its kernels for a reduction of `dtype`, in the order in which they are launched."""
        stages = ("_begin",) * self.begins + ("",) + ("_fold",) * self.folds
        return tuple(f"{self.name}{stage}<{reduction}<{element(dtype)}>>" for stage in stages)

    def unit(self, dtype: DType) -> Unit:
        """Everything it claims of `dtype`, to be compiled together."""
        ops = (OPS[op] for op, name in sorted(self.row.claims) if name == dtype.name)
        reductions = dict.fromkeys(reduction_of(op, dtype) for op in ops)
        return Unit(self.source, tuple(name for reduction in reductions for name in self.kernels(reduction, dtype)))


def parse(path: Path) -> OwnStrategy:
    """The strategy in `path`. Raises SourceError naming the file and what is wrong with its comment."""
    text = path.read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    fields = [(name, value) for name, value in map(_field, lines) if name]
    try:
        summary = " ".join(lines[: lines.index("")])
        launch = Launch.parse(_only(fields, "launch"))
        needs = dict(fields).get("needs", "sm_0")
        row = Strategy(path.stem, "cuda", summary, _only(fields, "error"), _claims(fields))
    except ValueError as error:
        raise SourceError(f"{path.name}: {error}") from error
    begins, folds = (bool(re.search(rf"\b{path.stem}_{stage}\(", text)) for stage in ("begin", "fold"))
    return OwnStrategy(row, path, launch, int(needs.removeprefix("sm_")), begins, folds)


def _field(line: str) -> tuple[str, str]:
    match = re.fullmatch(r"(launch|needs|ops|dtypes|error): (.+)", line)
    return (match[1], match[2]) if match else ("", "")


def _only(fields: list[tuple[str, str]], name: str) -> str:
    values = [value for field, value in fields if field == name]
    if len(values) != 1:
        raise ValueError(f"{len(values)} lines begin with '// {name}:', not one")
    return values[0]


def _claims(fields: list[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    pairs = [(name, value) for name, value in fields if name in ("ops", "dtypes")]
    if not pairs or [name for name, _ in pairs] != ["ops", "dtypes"] * (len(pairs) // 2):
        raise ValueError("each '// ops:' line must be followed by its '// dtypes:' line")
    found: frozenset[tuple[str, str]] = frozenset()
    for (_, ops), (_, dtypes) in zip(pairs[::2], pairs[1::2], strict=True):
        names = [word.strip() for word in ops.split(",")]
        for name in names:
            if name not in OPS:
                raise ValueError(f"there is no op {name!r}")
        found |= claims(names, [row for word in dtypes.split(",") for row in _dtypes(word.strip())])
    return found


def _dtypes(word: str) -> list[str]:
    rows = [name for name, row in DTYPES.items() if word in ("*", name, row.kind)]
    if not rows:
        raise ValueError(f"there is no dtype or kind {word!r}")
    return rows
