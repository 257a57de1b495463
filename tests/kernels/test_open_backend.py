"""Backends by the name of a slot."""

import pytest

from kernels import InvalidInput, Unavailable, open_backend


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


def test_the_gang_is_all_gpus_or_unavailable() -> None:
    try:
        gang = open_backend("gang")
    except Unavailable as error:
        assert "no GPU" in str(error)
    else:
        assert gang.device.backend == "cuda"
        assert "×" in gang.device.name
