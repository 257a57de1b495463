"""Launches of reductions of arrays on a GPU: of one stream, of threads and streams at once, and within CUDA graphs."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.rounded import REDUCED, expected, same
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import AlongReduction, Arrangement, ResidentReducer, whole
from warpfold.kernels.cuda.resident.along import rows_serve
from warpfold.kernels.dtypes import DTYPES


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("shape", [(64, 33), (40, 4096), (3000, 7), (7, 3000)])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_launches_that_are_remembered_serve_any_elements(library: str, shape: tuple[int, int]) -> None:
    module: Any = pytest.importorskip(library)
    from warpfold.engines import gpu as exact

    row = DTYPES["float32"]
    arrays = {data: adversarial(data, row, math.prod(shape)).reshape(shape) for data in ("normal", "any finite")}
    for axis in (0, 1):
        wanted = {
            data: np.array([expected("sum", row, part) for part in np.moveaxis(array, axis, 1)])
            for data, array in arrays.items()
        }
        on_gpu = {
            data: module.asarray(array) if library == "cupy" else module.from_numpy(array).cuda()
            for data, array in arrays.items()
        }
        order = ("normal", "any finite", "normal", "normal", "any finite", "any finite", "normal")
        values = [exact.sum(on_gpu[data], axis=axis) for data in order]
        for data, value in zip(order, values, strict=True):
            same(np.array(value.tolist(), np.float32), wanted[data].astype(np.float32))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("shape", [(64, 33), (40, 4096), (3000, 7), (7, 3000)])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_memory_of_remembered_launches_is_not_handed_out(library: str, shape: tuple[int, int]) -> None:
    module: Any = pytest.importorskip(library)
    import cupy

    from warpfold.engines import gpu as exact

    row = DTYPES["float32"]
    array = adversarial("any finite", row, math.prod(shape)).reshape(shape)
    x = module.asarray(array) if library == "cupy" else module.from_numpy(array).cuda()
    for op in ("sum", "std"):
        for axis in (0, 1):
            wanted = np.array([expected(op, row, part) for part in np.moveaxis(array, axis, 1)]).astype(np.float32)
            for _ in range(4):
                taken = [cupy.full(1 << size, 255, np.uint8) for size in range(2, 20) for _ in range(4)]
                same(np.array(getattr(exact, op)(x, axis=axis).tolist(), np.float32), wanted)
                del taken


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("data", ADVERSARIAL)
def test_rows_take_one_launch_whatever_their_elements_are(data: str, dtype: str) -> None:
    import cupy

    row = DTYPES[dtype]
    reducer = ResidentReducer(Gpu(0))
    for rows, length in ((2, 4), (5, 1000), (1030, 8), (33, 4096 // (row.itemsize // 4)), (4, 100)):
        array = adversarial(data, row, rows * length).reshape(rows, length)
        x, stream = cupy.asarray(array), cupy.cuda.get_current_stream().ptr
        arranged = Arrangement.of(array.shape, (length, 1), frozenset({1}))
        assert arranged is not None
        for op in ("sum", "mean"):
            assert rows_serve(reducer, FINISHED_OPS[op], row, arranged.members())
            reduction = AlongReduction(reducer, op, row, arranged)
            wanted = np.array([expected(op, row, part) for part in array]).astype(row.numpy)
            for _ in range(2):
                out = cupy.full(rows, np.pi, row.numpy)
                reduction(x.data.ptr, out.data.ptr, stream)
                same(out.get(), wanted)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rows_of_64_kib_take_one_launch_and_few_do_not(dtype: str) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    row, reducer = DTYPES[dtype], ResidentReducer(Gpu(0))
    length, many = (1 << 16) // row.itemsize, 4 * reducer.gpu.multiprocessors
    array = adversarial("any finite", row, 7 * length).reshape(7, length)
    wanted = np.array([expected("sum", row, part) for part in array]).astype(dtype)
    for rows in (many, many - 1):
        arranged = Arrangement.of((rows, length), (length, 1), frozenset({1}))
        assert arranged is not None
        assert rows_serve(reducer, FINISHED_OPS["sum"], row, arranged.members()) is (rows == many)
        x = cupy.asarray(array)[cupy.arange(rows) % 7]
        same(exact.sum(x, axis=1).get(), wanted[np.arange(rows) % 7])


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_do_not_begin_at_a_vector_have_the_same_values(dtype: str) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    array = adversarial("any finite", DTYPES[dtype], 4001)
    x = cupy.asarray(array)
    for start in (0, 1):
        rows = array[start : start + 4000].reshape(20, 200)
        wanted = np.array([expected("sum", DTYPES[dtype], each) for each in rows]).astype(dtype)
        same(exact.sum(x[start : start + 4000].reshape(20, 200), axis=1).get(), wanted)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("threads", [None, 128, 256])
@pytest.mark.parametrize("data", ["normal", "any finite", "special", "subnormal"])
def test_a_shape_for_few_elements_leaves_no_trace_in_variances(
    threads: int | None, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    row = DTYPES["float64"]
    shape = None if threads is None else replace(SHAPES["float64"][SumKind.MOMENTS], threads=threads, flight=5)
    monkeypatch.setattr(whole, "few_shape", lambda dtype, kind: shape if kind is SumKind.MOMENTS else None)
    reducer, stream = ResidentReducer(Gpu(0)), cupy.cuda.get_current_stream().ptr
    reductions = {name: reducer.whole(FINISHED_OPS[name], row) for name in ("var", "std")}
    for size in (1, 2, 3, 1281, 65_535, 65_537, 168_961, 400_001):
        array = adversarial(data, row, size)
        x, out = cupy.asarray(array), cupy.empty((), row.numpy)
        for name, reduction in reductions.items():
            for ddof in (0, 1):
                out.fill(np.pi)
                reduction(x.data.ptr, size, out.data.ptr, stream, ddof)
                assert float(out).hex() == expected(name, row, array, ddof=ddof).hex(), (name, size, ddof)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("size", [4_000_000, 30_000_001])
def test_launches_of_one_stream_one_after_another_do_not_disturb_each_other(size: int) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    array = adversarial("any finite", DTYPES["float32"], size)
    x = cupy.asarray(array)
    values = [exact.sum(x[start:]) for start in range(50)]
    rows = [exact.sum(x[: 64 * (size // 64)].reshape(64, -1), axis=1) for _ in range(3)]
    for start in (0, 1, 49):
        assert float(values[start]).hex() == expected("sum", DTYPES["float32"], array[start:]).hex()
    assert all((row == rows[0]).all() for row in rows)
    length = size // 64
    assert float(rows[0][5]).hex() == expected("sum", DTYPES["float32"], array[5 * length : 6 * length]).hex()


@pytest.mark.usefixtures("gpu")
def test_a_graph_replays_with_new_elements(torch: Any) -> None:
    from warpfold.engines import gpu as exact

    x = torch.randn(300, 2000, device="cuda")
    exact.sum(x), exact.sum(x, axis=1), exact.var(x, axis=0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values = (exact.sum(x), exact.sum(x, axis=1), exact.var(x, axis=0), exact.sum(x, axis=0))
    for data in ("normal", "any finite", "special"):
        array = adversarial(data, DTYPES["float32"], 600_000).reshape(300, 2000)
        x.copy_(torch.from_numpy(array))
        for _ in range(2):
            graph.replay()
        again = (exact.sum(x), exact.sum(x, axis=1), exact.var(x, axis=0), exact.sum(x, axis=0))
        for value, wanted in zip(values, again, strict=True):
            assert torch.equal(value.nan_to_num(1.5), wanted.nan_to_num(1.5))
        assert float(values[0]).hex() == expected("sum", DTYPES["float32"], array).hex()


@pytest.mark.usefixtures("gpu")
def test_tensors_are_read_on_the_current_stream(torch: Any) -> None:
    from warpfold.engines import gpu as exact

    stream = torch.cuda.Stream()
    x = torch.zeros(50_000_000, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(5):
            x += 1
        value = exact.sum(x)
    stream.synchronize()
    assert float(value) == 250_000_000


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_threads_and_streams_that_reduce_at_once_do_not_disturb_each_other(library: str) -> None:
    module: Any = pytest.importorskip(library)
    from warpfold.engines import gpu as exact

    arrays = [adversarial(("normal", "any finite")[k % 2], DTYPES["float64"], 300_000 + k) for k in range(6)]
    wanted = [expected("sum", DTYPES["float64"], array) for array in arrays]
    columns = [
        [expected("mean", DTYPES["float64"], column) for column in array[:300_000].reshape(-1, 3).T] for array in arrays
    ]
    if library == "cupy":
        on_gpu = [module.asarray(array) for array in arrays]
        module.cuda.runtime.deviceSynchronize()
        streams = [module.cuda.Stream(non_blocking=True) for _ in range(2)] + [module.cuda.Stream.null]
    else:
        on_gpu = [module.from_numpy(array).cuda() for array in arrays]
        module.cuda.synchronize()
        streams = [module.cuda.Stream() for _ in range(2)] + [module.cuda.default_stream()]

    def work(k: int) -> None:
        x, stream = on_gpu[k], streams[k % 3]
        with stream if library == "cupy" else module.cuda.stream(stream):
            sums = [exact.sum(x) for _ in range(40)]
            means = [exact.mean(x[:300_000].reshape(-1, 3), axis=0) for _ in range(40)]
        stream.synchronize()
        assert {float(value) for value in sums} == {wanted[k]}
        assert all(mean.tolist() == columns[k] for mean in means)

    for _ in range(2):  # the threads of the second round may have the names of those of the first
        with ThreadPoolExecutor(len(arrays)) as threads:
            list(threads.map(work, range(len(arrays))))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_value_is_not_overwritten_by_the_next_call(library: str) -> None:
    module: Any = pytest.importorskip(library)
    from warpfold.engines import gpu as exact

    x = module.ones(1024) if library == "cupy" else module.ones(1024, device="cuda", dtype=module.float64)
    sums = [exact.sum(x[:size]) for size in range(1025)]
    rows = [exact.sum(x.reshape(-1, 32) * k, axis=1) for k in range(5)]
    dots = [exact.dot(x[:size], x[:size]) for size in range(0, 1025, 64)]
    assert [float(value) for value in sums] == list(range(1025))
    assert [float(value) for value in dots] == list(range(0, 1025, 64))
    assert [row.tolist() for row in rows] == [[32.0 * k] * 32 for k in range(5)]


def test_a_thread_that_has_not_called_cuda_launches_with_the_same_bits(gpu: Gpu) -> None:
    import cupy

    reducer = ResidentReducer(gpu)
    arranged = Arrangement.of((96, 1000), (1000, 1), frozenset({1}))
    assert arranged is not None

    def work(dtype: str) -> None:
        row = DTYPES[dtype]
        alongs = {name: AlongReduction(reducer, name, row, arranged) for name in REDUCED}
        with gpu.active():
            stream = gpu.stream.ptr
            for data in ("normal", "any finite", "normal"):
                array = adversarial(data, row, 96 * 1000)
                x, value, values = cupy.asarray(array), cupy.empty((), row.numpy), cupy.empty(96, row.numpy)
                for name in REDUCED:
                    reducer.whole(FINISHED_OPS[name], row)(x.data.ptr, x.size, value.data.ptr, stream)
                    assert float(value).hex() == expected(name, row, array).hex()
                    for _ in range(3):
                        values.fill(7)
                        alongs[name](x.data.ptr, values.data.ptr, stream)
                        wanted = np.array([expected(name, row, part) for part in array.reshape(96, 1000)])
                        same(values.get(), wanted)
                reducer.dot(row)(x.data.ptr, x.data.ptr, x.size, value.data.ptr, stream)
                assert float(value).hex() == expected("dot", row, array, array).hex()

    work("float32")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work, "float64").result()
