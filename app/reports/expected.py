"""What a job's value should be, where that can be said without the job: by definition, in exact fractions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources import Source
from warpfold.kernels import reference
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Value, op_named

MOST_ELEMENTS = 10_000
"""More would take the api seconds in exact fractions."""

_NO_FOLDERS = Folders((), Path())  # only a worker reads files


@dataclass(frozen=True, slots=True)
class Expected:
    """The value by definition, or None and why it is not known here."""

    value: Value | None
    basis: str


def expected_of(spec: ReduceSpec) -> Expected:
    """The value that `spec` should have; takes up to about a second."""
    counts = [source.known_count for _, source in spec.sources()]
    if None in counts:
        return Expected(None, "not known: only a worker reads the file")
    if sum(filter(None, counts)) > MOST_ELEMENTS:
        return Expected(None, f"not known: more than {MOST_ELEMENTS} elements are not added up in fractions")
    op, policy = op_named(spec.op), NanPolicy(spec.nan_policy)
    dtype, bits = _patterns(spec.source)
    if spec.other is None:
        answer = reference.reduce(op, dtype, bits, policy, ddof=spec.ddof)
    else:
        answer = reference.dot(op, (dtype, bits), _patterns(spec.other), policy)
    if isinstance(answer, reference.Undefined):
        return Expected(None, f"not defined: {answer.reason}")
    return Expected(answer.value, "computed in exact fractions and rounded once")


def _patterns(source: Source) -> tuple[DType, list[int]]:
    """The elements as bits, with their dtype; not of a file."""
    assert source.known_dtype is not None, source
    assert source.known_count is not None, source
    array = source.open(_NO_FOLDERS).read(0, source.known_count)
    dtype = source.known_dtype
    words = np.ascontiguousarray(array).view(f"uint{8 * dtype.itemsize}")
    return dtype, [int(word) for word in words]
