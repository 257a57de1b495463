"""Exact reductions of arrays that are on a GPU already: of CuPy, PyTorch and JAX, against exact integers."""

import math
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.rounded import REDUCED, expected, same
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DTYPES


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
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_values_go_where_they_are_wanted(library: str) -> None:
    module: Any = pytest.importorskip(library)
    from warpfold.engines import gpu as exact

    made = module.arange(24.0).reshape(2, 3, 4)
    x = made if library == "cupy" else made.double().cuda()
    whole, turned = module.zeros_like(x[0, 0, 0]), module.zeros_like(x[:, 0]).T
    assert exact.sum(x, out=whole) is whole
    assert float(whole) == 276
    assert exact.norm2(x[0, 0], out=whole) is whole
    assert float(whole) == math.sqrt(14)
    assert exact.dot(x[0], x[0], out=whole) is whole
    assert float(whole) == 506
    sides = x.swapaxes(0, 2)
    assert exact.sum(sides, axis=1, out=turned) is turned
    assert turned.tolist() == np.arange(24.0).reshape(2, 3, 4).sum(axis=1).T.tolist()
    for refused in (module.zeros_like(x[0, 0]), whole.astype("f") if library == "cupy" else whole.float()):
        with pytest.raises(ValueError, match="out has the shape"):
            exact.sum(x, out=refused)


@pytest.mark.usefixtures("gpu")
def test_a_tensor_that_is_negated_when_it_is_read_has_its_own_sum(torch: Any) -> None:
    from warpfold.engines import gpu as exact

    z = torch.tensor([[3 + 1j, 4 + 2j], [5 + 4j, 6 + 8j]], device="cuda", dtype=torch.complex64)
    x = z.conj().imag
    assert x.is_neg()
    assert float(exact.sum(x)) == -15
    assert exact.sum(x, axis=0).tolist() == [-5, -10]
    assert float(exact.sum(x[0, :1])) == -1
    assert float(exact.dot(x, torch.ones_like(x))) == -15


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
