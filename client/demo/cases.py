"""The cases that the demo submits, with the right answers, which are computed without the service."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMALS_HEX = "-0x1.dcfb140000000p+9"
"""Correctly rounded sum of ten million float32 normals of seed 42; tests compute it with `math.fsum`."""

_SMALL = range(1, 17)


@dataclass(frozen=True, slots=True)
class Case:
    """A job and the answer it must give: a value to the bit, or the field that the service must refuse. With values to
    sweep `over` it is a batch, and `expected` has the value of each job."""

    title: str
    spec: Mapping[str, Any]
    expected: float | int | Sequence[float] | None = None
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    refused_field: str | None = None
    remark: str = ""


def write_samples(folder: Path) -> tuple[Path, NDArray[np.float64]]:
    """A .npy file of a million float64 that nearly cancel, and its contents."""
    rng = np.random.default_rng(7)
    large = 1e12 * rng.standard_normal(400_000)
    samples = rng.permutation(np.concatenate([large, -large, rng.random(200_000)]))
    path = folder / "samples.npy"
    np.save(path, samples)
    return path, samples


def cases(folder: Path) -> list[Case]:
    """All cases; writes the file that one of them reads into `folder`."""
    path, samples = write_samples(folder)
    three = np.array([1e8, 1, -1e8], dtype=np.float32)
    return [
        Case(
            "0 + 1 + … + 1023, float32",
            _reduce({"type": "values", "values": list(range(1024)), "dtype": "float32"}),
            expected=523776.0,
        ),
        Case(
            "1e8 + 1 − 1e8, float32",
            _reduce({"type": "values", "values": three.tolist(), "dtype": "float32"}),
            expected=1.0,
            remark=f"numpy.sum in float32: {three.sum()}",
        ),
        Case(
            "ten million normals, seed 42",
            _reduce({"type": "generate", "distribution": "normal", "n": 10_000_000, "seed": 42, "dtype": "float32"}),
            expected=float.fromhex(NORMALS_HEX),
            remark="the same bits on every backend",
        ),
        Case(
            "samples.npy, a million float64",
            _reduce({"type": "path", "path": str(path)}),
            expected=math.fsum(samples),
            remark=f"numpy.sum: {samples.sum():.17g}",
        ),
        Case(
            "its largest element's index", _reduce({"type": "path", "path": str(path)}, "argmax"), int(samples.argmax())
        ),
        Case(
            "a sweep: 1e8 + k − 1e8, float32",
            _reduce({"type": "values", "dtype": "float32"}),
            expected=[value for k in _SMALL for value in (float(k), 1e8)],
            over={"source.values": [[1e8, k, -1e8] for k in _SMALL], "op": ["sum", "max"]},
            remark=f"a batch of {2 * len(_SMALL)} jobs by one request",
        ),
        Case(
            "an op that does not exist",
            _reduce({"type": "values", "values": [1, 2], "dtype": "float32"}, "sun"),
            refused_field="op",
        ),
    ]


def _reduce(source: Mapping[str, Any], op: str = "sum") -> Mapping[str, Any]:
    return {"kind": "reduce", "op": op, "source": source}
