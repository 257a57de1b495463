"""Reductions of JAX arrays have the same bits within jit, vmap and grad as outside, those of rationals."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import adversarial
from tests.support.hard_sums import true_moments, true_sum
from warpfold.kernels.dtypes import DTYPES

jax = pytest.importorskip("jax", reason="JAX is in no lock: pip install jax")
jnp = jax.numpy
check_grads = pytest.importorskip("jax.test_util").check_grads
jax.config.update("jax_enable_x64", True)

from warpfold.engines import gpu  # noqa: E402 - JAX may be missing
from warpfold.engines import jax as exact  # noqa: E402

OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "sum_squares")


def same(made: Any, wanted: Any) -> None:
    made, wanted = np.asarray(made, np.float64), np.asarray(wanted, np.float64)
    assert made.shape == wanted.shape
    assert [float(x).hex() for x in made.reshape(-1)] == [float(x).hex() for x in wanted.reshape(-1)]


def test_values_within_jit_are_those_of_rationals() -> None:
    x, y = (adversarial("any finite", DTYPES["float64"], 300)[part] for part in (slice(0, 150), slice(150, 300)))
    var, _, std, _, norm1, norm2, squares, dot = true_moments(x.tolist(), y.tolist())
    mean = float(sum(map(Fraction, x.tolist()), Fraction(0)) / 150)
    wanted = {"sum": true_sum(x.tolist()), "mean": mean, "var": var, "std": std}
    wanted |= {"norm1": norm1, "norm2": norm2, "sum_squares": squares}
    for op in OPS:
        same(jax.jit(getattr(exact, op))(x), wanted[op])
        same(getattr(exact, op)(x), wanted[op])
    same(jax.jit(exact.dot)(x, y), dot)
    same(exact.var(x, ddof=1), true_moments(x.tolist(), y.tolist())[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_value_has_the_dtype_of_the_elements(dtype: str) -> None:
    elements = adversarial("normal", DTYPES[dtype], 60).view(DTYPES[dtype].numpy)
    x = jnp.asarray(elements)
    made = jax.jit(exact.sum)(x)
    assert made.dtype == x.dtype
    total = true_sum(elements.astype(np.float64).tolist())
    rounded = np.asarray(total).astype(elements.dtype)
    assert abs(float(made) - total) <= abs(float(rounded) - total)


def test_axes_batches_and_sizes_do_not_show_in_the_bits() -> None:
    x = jnp.asarray(adversarial("any finite", DTYPES["float64"], 120).reshape(4, 5, 6))
    for op in OPS:
        of = getattr(exact, op)
        for axis in (0, -1, (0, 2), None):
            for keepdims in (False, True) if op in ("sum", "std") else ():
                jitted = jax.jit(lambda t, f=of, a=axis, k=keepdims: f(t, a, keepdims=k))
                same(jitted(x), of(x, axis, keepdims=keepdims))
        rows = np.array([[float(of(x[i, j])) for j in range(5)] for i in range(4)])
        same(of(x, 2), rows)
        same(jax.vmap(jax.vmap(of))(x), rows)
        same(jax.jit(jax.vmap(lambda t, f=of: f(t, 0), in_axes=1, out_axes=1))(x), of(x, 0).T)
    same(jax.vmap(exact.dot, in_axes=(0, None))(x, x[1]), np.array([float(exact.dot(part, x[1])) for part in x]))


def test_no_elements_have_the_sum_0_and_no_mean() -> None:
    empty = jnp.zeros((0, 3))
    same(jax.jit(lambda t: exact.sum(t, 0))(empty), np.zeros(3))
    same(exact.dot(empty, empty), 0.0)
    assert np.isnan(jax.jit(exact.mean)(empty))
    assert np.isnan(exact.var(jnp.ones(1), ddof=1))


def test_derivatives_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    x, y = (jnp.asarray(rng.standard_normal((3, 4))) for _ in range(2))
    for op in OPS:
        check_grads(partial(getattr(exact, op), axis=1), (x,), order=1, modes=["fwd", "rev"])
    check_grads(exact.std, (x,), order=2, modes=["rev"])
    check_grads(exact.dot, (x, y), order=1, modes=["fwd", "rev"])
    same(jax.grad(exact.norm2)(jnp.zeros(3)), np.zeros(3))
    same(jax.jit(jax.grad(exact.sum))(x), np.ones((3, 4)))


def test_a_large_array_within_jit_waits_for_nothing() -> None:
    x = jnp.arange(3_000_000, dtype=jnp.float32)
    assert float(jax.jit(lambda t: exact.sum(t * 2))(x)) == np.float32(2 * sum(range(3_000_000)))


def test_what_cannot_be_reduced_is_refused_by_name() -> None:
    x = jnp.zeros((3, 4))
    with pytest.raises(TypeError, match="int64"):
        jax.jit(exact.sum)(jnp.zeros(3, jnp.int64))
    with pytest.raises(ValueError, match="axis 2 does not exist"):
        exact.sum(x, 2)
    with pytest.raises(ValueError, match="ddof"):
        exact.var(x, ddof=-1)
    with pytest.raises(ValueError, match="one shape and dtype"):
        exact.dot(x, x[0])


def test_the_functions_for_arrays_on_a_gpu_take_traced_ones() -> None:
    x = jnp.asarray([1e16, 1.0, -1e16])
    same(jax.jit(gpu.sum)(x), 1.0)
    same(gpu.mean(x), 1 / 3)
    same(jax.jit(lambda t: gpu.var(t, 0, ddof=1, keepdims=True))(x), [exact.var(x, ddof=1)])
    with pytest.raises(ValueError, match="cannot be given"):
        gpu.sum(x, out=x)
