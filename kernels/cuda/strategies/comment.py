"""Reads the leading comment of a strategy's CUDA source, which is its row in the catalogue.

Its text is the summary. Its last lines are

    // launch: threads=256 max_blocks=1024      the shape, see `gpu.launch_shape.LaunchShape`
    // needs: sm_90                             optional: the first architecture that can run it
    // ops: sums, tests, max                    names, or groups: sums, selections, tests
    // dtypes: float, int32                     names, kinds (float, int, uint, bool), or * for all
    // error: γ_n Σ|x|                          what may be lost

The strategy claims every op of an `ops` line for every dtype of the line after it; the two lines may be repeated.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, Op
from warpfold.kernels.strategy import claims


class SourceError(ValueError):
    """A strategy's leading comment lacks a line, or has a line that is wrong."""


@dataclass(frozen=True, slots=True)
class Comment:
    """The contents of a comment; the fields are those of `own.OwnStrategy`, and `launch` is read there."""

    summary: str
    error_bound: str
    claims: frozenset[tuple[str, str]]
    launch: str
    needs: int


def parse_comment(name: str, text: str) -> Comment:
    """The comment that `text`, the source in the file `name`, begins with. Raises SourceError naming the file."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    fields = [(field, value) for field, value in map(_field, lines) if field]
    try:
        return Comment(
            summary=" ".join(lines[: lines.index("")]),
            error_bound=_only(fields, "error"),
            claims=_claims(fields),
            launch=_only(fields, "launch"),
            needs=int(dict(fields).get("needs", "sm_0").removeprefix("sm_")),
        )
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from error


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
    claimed: frozenset[tuple[str, str]] = frozenset()
    for (_, ops), (_, dtypes) in zip(pairs[::2], pairs[1::2], strict=True):
        names = [row for word in ops.split(",") for row in _ops(word.strip())]
        claimed |= claims(names, [row for word in dtypes.split(",") for row in _dtypes(word.strip())])
    return claimed


_GROUPS: Mapping[str, Callable[[Op], bool]] = MappingProxyType(
    {
        "sums": lambda op: op.adds,
        "selections": lambda op: op.extreme is not None,
        "tests": lambda op: not op.adds and not op.rounds and op.extreme is None,
    }
)
"""Groups of ops, each of which a strategy computes in the same way."""


def _ops(word: str) -> list[str]:
    able = (row for row in OPS.values() if row.reduction is not None)
    names = [row.name for row in able if word == row.name or (word in _GROUPS and _GROUPS[word](row))]
    if not names:
        raise ValueError(f"there is no op or group {word!r} with a reduction")
    return names


def _dtypes(word: str) -> list[str]:
    rows = [name for name, row in DTYPES.items() if word in ("*", name, row.kind)]
    if not rows:
        raise ValueError(f"there is no dtype or kind {word!r}")
    return rows
