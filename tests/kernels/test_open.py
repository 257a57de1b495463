"""Backends by the name of a slot."""

import pytest

from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.open import open_backend


def test_the_cpu_is_a_slot() -> None:
    assert open_backend("cpu").device.backend == "cpu"


@pytest.mark.parametrize("slot", ["", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cpu:0", "cuda:0 "])
def test_any_other_name_is_refused(slot: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        open_backend(slot)
    assert raised.value.field == "slot"


def test_a_gpu_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        open_backend("cuda:999")


@pytest.mark.skipif(bool(visible_devices()), reason="there are GPUs")
def test_the_gang_of_no_gpus_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no GPU"):
        open_backend("gang")
