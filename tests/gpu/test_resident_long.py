"""Long arrays on a GPU, of which the data choose the kernel that adds them up: the same bits as by any other way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.accumulators import early_choices, on_device
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.rounded import expected
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import shapes
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import CHOICES
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import ResidentReducer
from warpfold.kernels.dtypes import DTYPES, DType

OPS = ("sum_squares", "norm2", "var", "std", "dot")


@pytest.fixture
def chosen_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of 5,000 elements are long."""
    monkeypatch.setattr(shapes, "CHOICES", early_choices(5000))


def started(reducer: ResidentReducer, op: str, dtype: DType, *arrays: Any) -> Callable[..., None]:
    """What puts the op of these arrays on a stream, with a value at an address."""
    addresses, count = [array.data.ptr for array in arrays], arrays[0].size

    def start(out: int, stream: int, **options: Any) -> None:
        if op == "dot":
            left, right = addresses
            reducer.dot(dtype)(left, right, count, out, stream, **options)
        else:
            reducer.whole(FINISHED_OPS[op], dtype)(addresses[0], count, out, stream, **options)

    return start


@pytest.mark.usefixtures("chosen_early")
@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", CHOICES)
def test_a_long_array_has_the_value_of_exact_arithmetic(gpu: Gpu, dtype: str, data: str) -> None:
    import cupy

    row, reducer = DTYPES[dtype], ResidentReducer(gpu)
    with gpu.active():
        stream = gpu.stream.ptr
        for size in (4999, 70_001, 300_001):
            array, other = adversarial(data, row, size, 4), adversarial(data, row, size, 5)
            x, y = on_device(array, 1), on_device(other, 1)
            out = cupy.full(1, 7, carrier(row))
            for op in OPS:
                arrays, on_gpu = ((array, other), (x, y)) if op == "dot" else ((array,), (x,))
                for ddof in (0, 1) if op in ("var", "std") else (0,):
                    options = {"ddof": ddof} if ddof else {}
                    for _ in range(2):  # the first leaves its total 0
                        started(reducer, op, row, *on_gpu)(out.data.ptr, stream, **options)
                        value = float(out.get().view(row.numpy)[0])
                        assert value.hex() == expected(op, row, *arrays, **options).hex(), (op, size, ddof)


@pytest.mark.usefixtures("chosen_early", "gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_arrays_of_any_streams_and_graphs_do_not_disturb_each_other(torch: Any, dtype: str) -> None:
    from warpfold.engines import tensors

    tensors._whole.cache_clear()  # its kernels are for longer arrays
    tensors._dot.cache_clear()
    from warpfold.engines import gpu as exact

    row = DTYPES[dtype]
    made = {data: adversarial(data, row, 300_001, 3) for data in ("normal", "any finite", "special")}
    x = torch.from_numpy(made["normal"]).cuda()
    y = torch.from_numpy(made["any finite"]).cuda()
    wanted = {
        "var": [expected("var", row, made["normal"]), expected("var", row, made["any finite"])],
        "norm2": [expected("norm2", row, made["normal"]), expected("norm2", row, made["any finite"])],
    }
    torch.cuda.synchronize()
    streams, values = [torch.cuda.Stream() for _ in range(3)], []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                values += [(name, k, getattr(exact, name)(z)) for name in wanted for k, z in enumerate((x, y))]
    torch.cuda.synchronize()
    for name, k, value in values:
        assert float(value).hex() == wanted[name][k].hex()
    graph = torch.cuda.CUDAGraph()
    exact.dot(x, y)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = exact.var(x), exact.dot(x, y)
    for array in made.values():
        x.copy_(torch.from_numpy(array))
        for _ in range(2):
            graph.replay()
        replayed = [float(value) for value in captured]
        exactly = [expected("var", row, array), expected("dot", row, array, made["any finite"])]
        assert np.array_equal(replayed, exactly, equal_nan=True)
    tensors._whole.cache_clear()
    tensors._dot.cache_clear()


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")
