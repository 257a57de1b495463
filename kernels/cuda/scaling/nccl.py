"""All-reduces by NCCL, through CuPy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import CudaError, Unavailable
from warpfold.kernels.machine.extras import install


@contextmanager
def nccl_errors(doing: str) -> Iterator[None]:
    """Turn NCCL's errors within into CudaError, and the driver's as `cuda_errors` does."""
    nccl = _nccl()
    with cuda_errors(doing):
        try:
            yield
        except nccl.NcclError as error:
            raise CudaError(f"{doing}: {error}") from error


def new_token() -> tuple[int, ...]:
    """The token by which the processes of one group find each other."""
    with nccl_errors("NCCL's unique id"):
        token: tuple[int, ...] = _nccl().get_unique_id()
        return token


class Communicators:
    """The communicators of some of a group's `ranks`, those from `first` on: one for each of `gpus`.

    With all ranks here it meets nobody else; otherwise the processes meet by `token`, and this waits for them.
    """

    def __init__(self, gpus: Sequence[Gpu], first: int, ranks: int, token: object) -> None:
        self._nccl = _nccl()
        self._gpus = gpus
        with nccl_errors("NCCL's start"):
            if len(gpus) == ranks:
                self._communicators = self._nccl.NcclCommunicator.initAll([gpu.index for gpu in gpus])
            else:
                (gpu,) = gpus
                with gpu.active():
                    self._communicators = [self._nccl.NcclCommunicator(ranks, token, first)]

    def prepared(self, sent: Sequence[Any], received: Sequence[Any]) -> Callable[[], None]:
        """A function that does what `all_reduce` does."""
        return partial(self.all_reduce, sent, received)

    def check(self) -> None:
        """NCCL's own calls raise what goes wrong."""

    def all_reduce(self, sent: Sequence[Any], received: Sequence[Any]) -> None:
        """Put on each GPU's stream: `received[k]` becomes the sum of what all ranks sent. CuPy arrays of int64 or
        float64, one of each for every GPU here."""
        several = len(self._gpus) > 1  # whose calls one thread must make as one, or they wait for each other
        kind = self._nccl.NCCL_INT64 if sent[0].dtype.kind == "i" else self._nccl.NCCL_FLOAT64
        with nccl_errors("all-reduce"), self._together() if several else nullcontext():
            for gpu, communicator, source, target in zip(self._gpus, self._communicators, sent, received, strict=True):
                with gpu.active():
                    communicator.allReduce(
                        source.data.ptr, target.data.ptr, source.size, kind, self._nccl.NCCL_SUM, gpu.stream.ptr
                    )

    @contextmanager
    def _together(self) -> Iterator[None]:
        self._nccl.groupStart()
        try:
            yield
        finally:
            self._nccl.groupEnd()


def _nccl() -> Any:
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise Unavailable(f"NCCL is not installed ({error})") from error
    if not getattr(nccl, "available", False):
        raise Unavailable(f"this CuPy has no NCCL: {install('cuda13', 'cuda12')}")
    return nccl
