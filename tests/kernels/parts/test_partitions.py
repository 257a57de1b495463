"""A partition of one value gives states of values alone. What states make together is in `tests/registries/`."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.array_files import opened
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts.partitions import reduce_partition


@pytest.mark.parametrize("op", ["sum", "max"])
def test_a_partition_of_what_stands_for_something_else_is_refused(tmp_path: Path, op: str) -> None:
    np.save(tmp_path / "d.npy", np.arange(5, dtype="m8[s]"))
    with pytest.raises(InvalidInput, match=r"a partition takes no duration\[s\] so far") as caught:
        reduce_partition(
            CpuBackend(8 << 20), lambda: (opened(tmp_path, "d.npy"), None), op_named(op), 0,
            nan_policy=NanPolicy.PROPAGATE,
        )  # fmt: skip
    assert caught.value.field == "backend"
