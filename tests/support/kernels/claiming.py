"""Arrays and files of which threads claim pieces, and their sums."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.claims import Claims, stream_claims
from warpfold.kernels.cpu.folds import SumFold
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.source import ArraySource, FileBytes, FileSource
from warpfold.kernels.sources.chained import ChainedSource, Link

PIECE = 1 << 10


def opened(folder: Path, array: NDArray[np.generic]) -> ArraySource:
    np.save(folder / "x.npy", array)
    with (folder / "x.npy").open("rb") as file:
        return open_array(file, read_head(file))


def summed(
    source: ArraySource | FileSource | ChainedSource,
    op: str = "sum",
    progress: Callable[[int, int], None] | None = None,
    piece: int = PIECE,
) -> SumFold:
    make = lambda: SumFold(OPS[op], [source.dtype], NanPolicy.PROPAGATE)  # noqa: E731 - a fold for each thread
    return stream_claims(Claims(source, piece), make, progress).fold


def adversarial(count: int, dtype: str) -> NDArray[np.generic]:
    """Finite floats of all exponents and both signs, of which the second half takes a part away again."""
    row = DTYPES[dtype]
    random = np.random.default_rng(count)
    bits = random.integers(0, 256, count * row.itemsize, np.uint8).view(row.numpy)
    array = np.where(np.isfinite(bits), bits, row.numpy.type(-0.0))
    array[count // 2 : count // 2 + count // 4] = -array[: count // 4]
    return array


def chain(folder: Path, arrays: Sequence[NDArray[np.generic]], dtype: str) -> ChainedSource:
    """Arrays in files of their own, each behind another number of other bytes."""
    links = []
    for number, array in enumerate(arrays):
        path = folder / f"{number}"
        path.write_bytes(b"?" * number + array.tobytes())
        with path.open("rb") as file:
            source = FileSource(DTYPES[dtype], array.size, FileBytes(file.fileno(), number), 0)
        links.append(Link(repr(path.name), array.size, lambda source=source: source))  # type: ignore[misc]
    return ChainedSource(DTYPES[dtype], links)


def mapped_chain(folder: Path, arrays: Sequence[NDArray[np.generic]], dtype: str) -> ChainedSource:
    """Arrays in `.npy` files of their own, which are mapped."""
    links = []
    for number, array in enumerate(arrays):
        np.save(folder / f"{number}.npy", array)
        with (folder / f"{number}.npy").open("rb") as file:
            source = open_array(file, read_head(file))
        links.append(Link(f"'{number}'", array.size, lambda source=source: source))  # type: ignore[misc]
    return ChainedSource(DTYPES[dtype], links)
