"""All-reduces by stores into each other's memory. Where there are fewer GPUs than ranks, some share a GPU."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench.blocking_kernel import BlockingKernel
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.scaling.mailboxes import WORDS, Mailboxes
from warpfold.kernels.errors import CudaError

A_GPU = 4
"""The most ranks of one GPU: kernels of a few streams run at the same time, those of many may wait for each other."""
EPOCHS, LOOK_EVERY = 2000, 20


def gpus_for(ranks: int) -> list[Gpu]:
    count = len(visible_devices())
    if ranks > A_GPU * count:
        pytest.skip(f"{ranks} ranks need more than {count} GPUs")
    return [Gpu(rank % count) for rank in range(ranks)]


def on_each(gpus: Sequence[Gpu], arrays: NDArray[Any]) -> list[Any]:
    import cupy

    made = []
    for gpu, array in zip(gpus, arrays, strict=True):
        with gpu.active():
            made.append(cupy.asarray(array))
            gpu.stream.synchronize()
    return made


def bits(gpus: Sequence[Gpu], arrays: Sequence[Any]) -> list[list[int]]:
    seen = []
    for gpu, array in zip(gpus, arrays, strict=True):
        with gpu.active():
            seen.append(array.get().view(np.int64).tolist())
    return seen


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 12])
def test_every_rank_has_the_same_sum_after_each_of_many(ranks: int, dtype: type[Any]) -> None:
    """What a rank sends follows from what it received before, so that an all-reduce that went wrong shows later, too.
    Floats are added in the order of ranks."""
    import cupy

    gpus, random = gpus_for(ranks), np.random.default_rng(ranks)
    mailboxes = Mailboxes(gpus, 0, ranks)
    mailboxes.open([])
    factor = dtype(0.25) if dtype is np.float64 else dtype(6364136223846793005)
    sizes = (1, 2, 31, 32, 33, 78, WORDS - 1, WORDS)
    begun = {size: random.integers(-(1 << 62), 1 << 62, (2, ranks, size)).astype(dtype) for size in sizes}
    noise, sent = ({size: on_each(gpus, part[k]) for size, part in begun.items()} for k in (0, 1))
    received = {size: on_each(gpus, np.zeros((ranks, size), dtype)) for size in sizes}
    busy = on_each(gpus, np.zeros((ranks, 1 << 22)))
    starts = {size: mailboxes.prepared(sent[size], received[size]) for size in sizes}
    expected = {size: part[1].copy() for size, part in begun.items()}
    for epoch in range(EPOCHS):
        size = int(random.choice(sizes))
        starts[size]()
        totals = expected[size][0].copy()
        for numbers in expected[size][1:]:
            totals += numbers
        if epoch % LOOK_EVERY == 0:
            assert bits(gpus, received[size]) == [totals.view(np.int64).tolist()] * ranks, (epoch, size)
        expected[size] = totals * factor + begun[size][0]
        for rank, gpu in enumerate(gpus):
            with gpu.active():
                cupy.multiply(received[size][rank], factor, out=sent[size][rank])
                sent[size][rank] += noise[size][rank]
                if random.random() < 0.1 / ranks:  # this rank comes late
                    busy[rank] += 1.0
    for gpu in gpus:  # whose machine code goes with them
        gpu.stream.synchronize()
    mailboxes.check()


@pytest.mark.usefixtures("backend")
def test_a_rank_that_does_not_come_is_named_and_nobody_waits_for_ever() -> None:
    gpus = gpus_for(3)
    mailboxes = Mailboxes(gpus, 0, 3, patience_s=0.5)
    mailboxes.open([])
    arrays = [on_each(gpus, np.ones((3, 78), np.int64)) for _ in range(2)]
    start, blocking_kernel = mailboxes.prepared(*arrays), BlockingKernel(gpus[1])
    start()
    for gpu in gpus:
        gpu.stream.synchronize()
    mailboxes.check()
    with blocking_kernel.held():
        began = time.monotonic()
        for _ in range(20):
            start()
        for gpu in (gpus[0], gpus[2]):
            gpu.stream.synchronize()
        waited_s = time.monotonic() - began
    with pytest.raises(CudaError, match=r"rank 1 did not come to an all-reduce within 0\.5 s"):
        mailboxes.check()
    assert 0.5 <= waited_s < 1.8, "once a rank has given up, its later all-reduces wait no more"


def test_a_process_whose_gpu_others_may_not_use_is_an_error(backend: CudaBackend) -> None:
    mailboxes = Mailboxes([backend.gpu], 0, 2)
    with pytest.raises(CudaError, match="gave no access"):
        mailboxes.open([mailboxes.handles(), ()])
    with pytest.raises(CudaError, match="the mailbox of another process"):
        mailboxes.open([mailboxes.handles(), (bytes(64),)])
