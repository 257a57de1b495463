"""Exact reductions of arrays that are on a GPU already: of CuPy, PyTorch and JAX, against exact integers."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.kernels.exact_on_host import portable
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import Arrangement, ResidentReducer, reduce_along
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import finish
from warpfold.kernels.ops import OPS

Array = NDArray[Any]
REDUCED = [name for name in FINISHED_OPS if name != "dot"]


def expected(name: str, dtype: DType, *arrays: Array, ddof: int = 0) -> float:
    """The value in Python's integers."""
    states = portable(FINISHED_OPS[name].kind, *(np.ascontiguousarray(array).reshape(-1) for array in arrays))
    count = states[0].count
    if FINISHED_OPS[name].kind is SumKind.MOMENTS:
        if count <= ddof:
            return math.nan
        values, squares = states
        return (finish.variance if name == "var" else finish.deviation)(values, squares, ddof, dtype)
    if name == "mean" and not count:
        return math.nan
    return float(finish.value_of(OPS[name], states[0], dtype.name))


def same(values: Any, wanted: Array) -> None:
    """Both have the same shape and the same values, bit for bit; NaNs are alike."""
    assert values.shape == wanted.shape
    assert [float(x).hex() for x in values.reshape(-1)] == [float(x).hex() for x in wanted.reshape(-1)]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_op_of_a_cupy_array_is_rounded_once(dtype: str, data: str) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    row = DTYPES[dtype]
    for size in (0, 1, 7, 1000, 100_003):
        array, other = adversarial(data, row, size), adversarial(data, row, size)[::-1].copy()
        x, y = cupy.asarray(array), cupy.asarray(other)
        for name in REDUCED:
            options = {"ddof": 1} if name in ("var", "std") else {}
            value = float(getattr(exact, name)(x, **options).get())
            assert value.hex() == expected(name, row, array, **options).hex(), (name, size)
        assert float(exact.dot(x, y).get()).hex() == expected("dot", row, array, other).hex(), size


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_along_any_axes_are_those_of_each_value_alone(dtype: str, name: str) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    row = DTYPES[dtype]
    function = getattr(exact, name)
    for data in ("normal", "any finite", "special"):
        array = adversarial(data, row, 6 * 7 * 11 * 40).reshape(6, 7, 11, 40)
        x = cupy.asarray(array)
        for axis in (0, 3, -1, (0, 1), (2, 3), (0, 2), (1,), (0, 3), (1, 2, 3), (0, 1, 2, 3), None):
            axes = tuple(range(4)) if axis is None else tuple(a % 4 for a in np.atleast_1d(axis))
            moved = np.moveaxis(array, axes, range(len(axes))).reshape(math.prod(array.shape[a] for a in axes), -1)
            wanted = np.array([expected(name, row, moved[:, k]) for k in range(moved.shape[1])])
            kept = tuple(length for a, length in enumerate(array.shape) if a not in axes)
            same(function(x, axis=axis).get(), wanted.reshape(kept))
            ones = tuple(1 if a in axes else length for a, length in enumerate(array.shape))
            same(function(x, axis=axis, keepdims=True).get(), wanted.reshape(ones))
            turned = x.transpose(3, 1, 0, 2)
            moved_axes = tuple((3, 1, 0, 2).index(a) for a in axes)
            back = function(turned, axis=moved_axes, keepdims=True).transpose(2, 1, 3, 0)
            same(back.get(), wanted.reshape(ones))
        room = cupy.empty((6, 11, 40), row.numpy)
        assert function(x, axis=1, out=room) is room
        same(room.get(), function(x, axis=1).get())


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [2, 3, 33, 150, 1001])
def test_rows_of_any_length_are_summed_wherever_they_begin(dtype: str, length: int) -> None:
    import cupy

    from warpfold.engines import gpu as exact

    row = DTYPES[dtype]
    for data in ("normal", "any finite"):
        array = adversarial(data, row, 70 * length + 3)
        for start in (0, 1, 3):
            part = array[start : start + 70 * length].reshape(70, length)
            wanted = np.array([expected("mean", row, values) for values in part])
            x = cupy.asarray(array)[start : start + 70 * length].reshape(70, length)
            for _ in range(2):
                same(exact.mean(x, axis=1).get(), wanted)


@pytest.mark.usefixtures("gpu")
def test_arrays_with_gaps_are_reduced_as_they_are() -> None:
    import cupy

    from warpfold.engines import gpu as exact

    array = adversarial("normal", DTYPES["float32"], 4000)
    for part in (slice(None, None, 3), slice(1, 1001), slice(None, None, -1)):
        assert (
            float(exact.sum(cupy.asarray(array)[part])).hex() == expected("sum", DTYPES["float32"], array[part]).hex()
        )
        x, y = cupy.asarray(array)[part], cupy.asarray(array)[part][::-1]
        assert float(exact.dot(x, y)).hex() == expected("dot", DTYPES["float32"], array[part], array[part][::-1]).hex()


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
def test_what_cannot_be_reduced_is_refused_by_name() -> None:
    import cupy

    from warpfold.engines import gpu as exact

    x = cupy.zeros((3, 4), np.float32)
    with pytest.raises(TypeError, match="int32"):
        exact.sum(cupy.zeros(3, np.int32))
    with pytest.raises(TypeError, match="array of CuPy, PyTorch or JAX"):
        exact.sum(np.zeros(3))
    with pytest.raises(ValueError, match="axis 2 does not exist"):
        exact.sum(x, axis=2)
    with pytest.raises(ValueError, match="twice"):
        exact.sum(x, axis=(0, -2))
    with pytest.raises(ValueError, match="ddof"):
        exact.var(x, ddof=-1)
    with pytest.raises(ValueError, match="out has the shape"):
        exact.sum(x, axis=0, out=cupy.zeros(3, np.float32))
    with pytest.raises(ValueError, match="one shape and dtype"):
        exact.dot(x, x[0])


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_op_of_a_tensor_is_rounded_once(torch: Any, dtype: str) -> None:
    from warpfold.engines import gpu as exact

    row = DTYPES[dtype]
    for data in ("normal", "any finite", "special"):
        array = adversarial(data, row, 12 * 500)
        bits = torch.from_numpy(array.view(f"i{row.itemsize}").copy()).cuda()
        x = bits.view(getattr(torch, dtype)).reshape(12, 500)
        for name in REDUCED:
            function = getattr(exact, name)
            wanted = np.array([expected(name, row, part) for part in array.reshape(12, 500)])
            same(function(x, axis=1).double().cpu().numpy(), wanted)
            same(function(x[3:4], axis=-1).double().cpu().numpy(), wanted[3:4])  # the same in any batch
            columns = np.array([expected(name, row, part) for part in array.reshape(12, 500).T[:9]])
            same(function(x, axis=0)[:9].double().cpu().numpy(), columns)
            assert float(function(x.t())).hex() == expected(name, row, array).hex()
        y = x.flip(0).contiguous()
        flipped = array.reshape(12, 500)[::-1].reshape(-1)
        assert float(exact.dot(x, y)).hex() == expected("dot", row, array, flipped).hex()


@pytest.mark.usefixtures("gpu")
def test_gradients_are_those_of_the_formulas(torch: Any) -> None:
    from warpfold.engines import gpu as exact

    generator = torch.Generator(device="cuda").manual_seed(3)
    x = torch.randn(4, 6, dtype=torch.float64, device="cuda", generator=generator, requires_grad=True)
    y = torch.randn(4, 6, dtype=torch.float64, device="cuda", generator=generator, requires_grad=True)
    for name in REDUCED:
        for dim in (None, 0, 1, (0, 1)):
            assert torch.autograd.gradcheck(lambda t, n=name, d=dim: getattr(exact, n)(t, axis=d), (x,)), (name, dim)
    assert torch.autograd.gradcheck(exact.dot, (x, y))


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's compiler warns of its own functions
def test_the_ops_go_through_compile_and_opcheck(torch: Any) -> None:
    from warpfold.engines import torch as exact

    x = torch.randn(64, 300, device="cuda")
    torch.library.opcheck(torch.ops.warpfold.reduce, (x, "mean", [1], True, 0))

    @torch.compile(fullgraph=True)
    def normed(t: Any) -> Any:
        return (t - exact.mean(t, 1, keepdim=True)) / exact.std(t, 1, keepdim=True) + exact.sum(t)

    plain = (x - exact.mean(x, 1, keepdim=True)) / exact.std(x, 1, keepdim=True) + exact.sum(x)
    assert torch.allclose(normed(x), plain, rtol=1e-6)


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
    stream = cupy.cuda.get_current_stream()

    def work(dtype: str) -> None:
        row = DTYPES[dtype]
        with gpu.active():
            for data in ("normal", "any finite"):
                array = adversarial(data, row, 96 * 1000)
                x, value, values = cupy.asarray(array), cupy.empty((), row.numpy), cupy.empty(96, row.numpy)
                arranged = Arrangement.of((96, 1000), (1000, 1), frozenset({1}))
                assert arranged is not None
                for name in REDUCED:
                    reducer.reduce(FINISHED_OPS[name], row, x.data.ptr, x.size, value.data.ptr, stream, 0, False)
                    assert float(value).hex() == expected(name, row, array).hex()
                    for _ in range(2):
                        values.fill(7)
                        address, out = x.data.ptr, values.data.ptr
                        reduce_along(reducer, name, row, address, arranged, out, stream, 0, captured=False)
                        wanted = np.array([expected(name, row, part) for part in array.reshape(96, 1000)])
                        same(values.get(), wanted)
                reducer.dot(row, x.data.ptr, x.data.ptr, x.size, value.data.ptr, stream, captured=False)
                assert float(value).hex() == expected("dot", row, array, array).hex()

    work("float32")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work, "float64").result()


def test_arrays_of_jax_are_reduced_where_they_lie(gpu: Gpu) -> None:
    jax = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX sees no GPU")
    from warpfold.engines import gpu as exact

    array = adversarial("any finite", DTYPES["float32"], 12_000)
    x = jax.numpy.asarray(array.reshape(12, 1000))
    value = exact.sum(x, axis=1)
    assert isinstance(value, jax.Array)
    same(np.asarray(value), np.array([expected("sum", DTYPES["float32"], part) for part in array.reshape(12, 1000)]))
    assert float(exact.norm2(x)).hex() == expected("norm2", DTYPES["float32"], array).hex()
    assert float(jax.jit(exact.sum)(x)).hex() == float(exact.sum(x)).hex()  # by way of the host
