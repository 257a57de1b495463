"""The CPU as a backend: every op of every dtype, from the vectors and against the reference."""

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.conformance import check_degrees_of_freedom, check_ops, same, source
from tests.support.kernels.patterns import patterns
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.exact import ExactState
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import INTEGER, OPS, NanPolicy, Op, Terms, reference
from warpfold.kernels.source import ArraySource, GeneratedSource


@pytest.fixture(scope="module")
def backend() -> CpuBackend:
    return CpuBackend()


@pytest.mark.parametrize("name", list(DTYPES))
def test_the_exact_strategy_gives_the_values_and_states_of_the_vectors(backend: CpuBackend, name: str) -> None:
    check_ops(backend, name)


@pytest.mark.parametrize("name", list(DTYPES))
def test_the_exact_strategy_divides_by_the_degrees_of_freedom_of_the_vectors(backend: CpuBackend, name: str) -> None:
    check_degrees_of_freedom(backend, name)


@given(
    drawn=st.sampled_from(list(DTYPES.values())).flatmap(lambda d: st.tuples(st.just(d), patterns(d))),
    op=st.sampled_from([op for op in OPS.values() if op.sources == 1]),
    policy=st.sampled_from(list(NanPolicy)),
    freedom=st.integers(0, 3),
)
def test_every_op_is_what_it_is_by_definition(
    backend: CpuBackend, drawn: tuple[DType, list[int]], op: Op, policy: NanPolicy, freedom: int
) -> None:
    dtype, bits = drawn
    if op.name == "prod" and dtype.is_float:
        return
    ddof = min(freedom, 1 if op.lost > 1 else 3) if op.ddof else 0  # that of a sample takes more than one
    wanted = reference.reduce(op, dtype, bits, policy, ddof=ddof)
    if isinstance(wanted, reference.Undefined):
        with pytest.raises(InvalidInput):
            backend.reduce(source(bits, dtype), op.name, nan_policy=policy, ddof=ddof)
        return
    reduction = backend.reduce(source(bits, dtype), op.name, nan_policy=policy, ddof=ddof)
    assert same(reduction.value, wanted.value), (reduction.value, wanted.value)
    assert reduction.count == wanted.count
    assert reduction.dtype == op.result_dtype(dtype)
    assert (reduction.dtype == INTEGER) <= (type(reduction.value) is int)


def test_the_issues_examples(backend: CpuBackend) -> None:
    three = ArraySource(np.array([1e8, 1.0, -1e8], dtype=np.float32))
    assert backend.reduce(three, "sum").value == 1.0
    assert backend.reduce(three, "sum", strategy="numpy").value == 0.0
    numbers = ArraySource(np.arange(1024, dtype=np.float64))
    assert backend.reduce(numbers, "sum").value == 523776.0


def test_auto_is_exact_where_that_applies_and_numpy_for_float_products(backend: CpuBackend) -> None:
    data = ArraySource(np.array([2.0, 3.0], dtype=np.float32))
    assert backend.reduce(data, "sum").strategy == "exact"
    product = backend.reduce(data, "prod")
    assert (product.strategy, product.value, product.correctly_rounded) == ("numpy", 6.0, False)


@pytest.mark.parametrize(
    ("op", "strategy", "field"), [("middle", "auto", "op"), ("sum", "magic", "strategy"), ("prod", "exact", "strategy")]
)
def test_what_is_unknown_or_not_computed_is_refused_with_the_field(
    backend: CpuBackend, op: str, strategy: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        backend.reduce(ArraySource(np.ones(2, dtype=np.float32)), op, strategy=strategy)
    assert raised.value.field == field


def test_a_long_generated_sum_has_the_state_of_its_array(backend: CpuBackend) -> None:
    named = GeneratedSource("normal", 3_000_000, 42, DTYPES["float32"])
    reduction = backend.reduce(named, "sum")
    wanted = ExactState.empty(Terms.VALUES).add(named.read(0, named.count))
    assert reduction.state == wanted.to_bytes()


def test_numpy_is_refused_an_array_beyond_memory_before_it_is_made(backend: CpuBackend) -> None:
    named = GeneratedSource("normal", 1 << 40, 42, DTYPES["float32"])
    began = time.perf_counter()
    with pytest.raises(OutOfMemory, match=r"needs 4,398,046,511,104 bytes of memory, and [\d,]+ are available"):
        backend.reduce(named, "sum", strategy="numpy")
    assert time.perf_counter() - began < 30  # to make it takes hours


def test_a_thousand_values_take_a_small_part_of_the_time_of_ten_million(backend: CpuBackend) -> None:
    def cpu_time(n: int) -> float:
        data = ArraySource(np.arange(n, dtype=np.float32))
        times = []
        for _ in range(20):
            began = time.process_time()  # this machine may be slow, or busy with something else
            backend.reduce(data, "sum")
            times.append(time.process_time() - began)
        return min(times)

    assert 5 * cpu_time(1000) < cpu_time(10_000_000)


def test_the_device_is_this_machine(backend: CpuBackend) -> None:
    device = backend.device
    assert (device.backend, device.index, device.cores) == ("cpu", 0, usable_cores())
    assert device.memory_bytes > 1 << 28
    assert device.name
    assert dict(device.versions)["numpy"] == np.__version__


def test_the_catalogue_is_read_without_compilers_or_the_servers_packages() -> None:
    code = (
        "import sys; from warpfold.kernels.catalog import strategies; assert strategies();"
        "print(sorted({'numba', 'psutil', 'cupy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
