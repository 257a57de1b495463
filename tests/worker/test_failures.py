import pytest

from tests.support.leases import lease_on
from warpfold.contract.states import Reason
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.worker.failures import failure_of

LEASE = lease_on("{}")


@pytest.mark.parametrize(
    ("error", "reason", "replace"),
    [
        (InvalidInput("bad"), Reason.INVALID_INPUT, False),
        (OutOfMemory("big"), Reason.OUT_OF_MEMORY, False),
        (MemoryError(), Reason.OUT_OF_MEMORY, False),
        (RuntimeError("can't start new thread"), Reason.OUT_OF_MEMORY, False),
        (Unavailable("none"), Reason.UNAVAILABLE, False),
        (CudaError("ill"), Reason.CUDA_ERROR, True),
        (KernelError("hm"), Reason.INTERNAL, True),
        (ZeroDivisionError("oops"), Reason.INTERNAL, True),
    ],
)
def test_every_error_has_its_reason(error: Exception, reason: Reason, replace: bool) -> None:
    failure = failure_of(error, LEASE)
    assert (failure.reason, failure.replace) == (reason, replace)
    assert failure.error


def test_a_sentence_can_be_stored_and_read() -> None:
    sentence = failure_of(InvalidInput("a\x00b" + "c" * 10_000), LEASE).error
    assert sentence.startswith("abc")
    assert len(sentence) == 2000


def test_what_is_not_ours_to_explain_is_not_shown() -> None:
    assert "password" not in failure_of(RuntimeError("password=1234"), LEASE).error
