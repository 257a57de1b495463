"""Group-by by the GPU's code on the host: every table has the keys, the counts and the bits of the CPU's own."""

import sys
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from tests.support.gpu.adversarial import adversarial
from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import host_array
from tests.support.kernels.keyed_on_host import SMALL_KEYED, HostKeyedGpu, keyed_cupy
from tests.support.kernels.keyed_rows import in_parts
from warpfold.kernels import ops
from warpfold.kernels.backend import Stages
from warpfold.kernels.catalog import keyed_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.keyed import columns, reducing
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts import shares
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.shares import group_shares
from warpfold.kernels.query import Answer, ByKey, Query
from warpfold.kernels.source import ArraySource

OPS = ("sum", "mean", "min", "max")
ROWS = 900


class HostStager:
    """Elements are where they are."""

    def whole(self, source: ArraySource, progress: Any) -> Any:
        return host_array(np.array(source.read(0, source.count)))

    def stages(self, reduce_s: float) -> Stages:
        return Stages(reduce_s=reduce_s)


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`group_by` of a source by a plan."""
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    libraries = on_host.build_keyed(), on_host.build_grouped()
    monkeypatch.setitem(sys.modules, "cupy", keyed_cupy())
    monkeypatch.setattr(columns, "KeyedSums", partial(KeyedSums, shapes=SMALL_KEYED))
    gpu, stager = HostKeyedGpu(*libraries), HostStager()
    return lambda source, plan: reducing.group_by(gpu, stager, source, plan, None)  # type: ignore[arg-type]


def same(made: GroupTable, wanted: GroupTable) -> None:
    assert made.key_names == wanted.key_names
    assert [array.to_pylist() for array in made.keys] == [array.to_pylist() for array in wanted.keys]
    assert [array.type for array in made.keys] == [array.type for array in wanted.keys]
    assert (made.sizes.tolist(), made.dropped) == (wanted.sizes.tolist(), wanted.dropped)
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert (mine.name, mine.op, mine.dtype) == (theirs.name, theirs.op, theirs.dtype)
        assert mine.counts.tolist() == theirs.counts.tolist(), mine.op
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
        for states, wanted_states in zip(mine.states, theirs.states, strict=True):
            assert [states[k] for k in range(len(states))] == [wanted_states[k] for k in range(len(states))], mine.op
    assert made.described == wanted.described
    assert made.kernel


def plan_of(columns: int, **options: Any) -> GroupPlan:
    asked = [Aggregation(op_named(op), column, f"{column}{op}") for column in range(columns) for op in OPS]
    return GroupPlan(tuple(asked), **options)


def frame_source(table: pa.Table, keys: list[str], columns: list[str]) -> KeyedSource:
    return keyed_frame(
        frame_of(table), [Wanted(name, name, "by.0") for name in keys], [Wanted(name, name, "x") for name in columns],
        refuse_nulls=False,
    )  # fmt: skip


@pytest.mark.parametrize("policy", [NanPolicy.PROPAGATE, NanPolicy.OMIT])
def test_arrays_by_integers(on_gpu: Any, policy: NanPolicy) -> None:
    random = np.random.default_rng(1)
    keys = ArraySource(random.integers(-9, 90, ROWS).astype(np.int32))
    for dtype, data in (("float32", "special"), ("float64", "any finite"), ("int64", ""), ("bool", "")):
        if data:
            array = adversarial(data, DTYPES[dtype], ROWS, 1)
        else:
            array = random.integers(-(1 << 62), 1 << 62, ROWS) if dtype == "int64" else random.random(ROWS) < 0.5
        source = keyed_arrays([("k", keys, "by.0")], [("x", ArraySource(array), "x")])
        for sort, least in ((True, 0), (False, 9)):
            plan = plan_of(1, nan_policy=policy, sort=sort, min_count=least)
            same(on_gpu(source, plan), CpuBackend().group_by(source, plan))


ENDS = {"int32": (-99, 99), "int64": (-(1 << 63), (1 << 63) - 1)}
OWN = [op for op in ops.OPS.values() if op.terms is not ops.Terms.TOTALS]
"""The ops that a backend is asked about."""
EVERY = tuple(op for op in OWN if "cuda" in keyed_backends(op, None))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int32", "uint32", "int64", "uint64", "bool"]
)
def test_every_op_of_every_dtype(on_gpu: Any, dtype: str) -> None:
    random, row = np.random.default_rng(4), DTYPES[dtype]
    keys = random.integers(-9, 30, ROWS).astype(np.int32)
    if dtype == "bool":
        array = random.random(ROWS) < 0.5
    elif row.is_float:
        array = adversarial("special" if dtype == "float64" else "negative zeros", row, ROWS, 1)
    else:
        ends = np.iinfo(dtype)
        array = random.integers(ends.min, ends.max, ROWS, dtype, endpoint=True)
        array[:9] = ends.min
    known = [op for op in OWN if "cuda" in keyed_backends(op, row)]
    assert len(known) == len(EVERY) + (dtype == "bool")  # the product of truth values
    for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT)[: 2 if row.is_float else 1]:
        asked = [Aggregation(op, 0, op.name, ddof) for op in known for ddof in ((0, 1) if op.ddof else (0,))]
        source = keyed_arrays([("k", ArraySource(keys), "by.0")], [("x", ArraySource(array), "x")])
        plan = GroupPlan(tuple(asked), nan_policy=policy)
        same(on_gpu(source, plan), CpuBackend().group_by(source, plan))


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("float32", "as wide as a window"),
        ("float64", "any finite"),
        ("float64", "special"),
        ("int32", ""),
        ("int64", ""),
    ],
)
def test_states_are_those_of_a_cpu(on_gpu: Any, dtype: str, data: str) -> None:
    random, rows = np.random.default_rng(5), 300
    summing = [op_named(name) for name in ("mean", "sum_squares", "norm1", "std")]
    array = adversarial(data, DTYPES[dtype], rows, 2) if data else random.integers(*ENDS[dtype], rows, dtype)
    keys = np.sort(random.integers(0, 30, rows)).astype(np.int32)
    words = pa.table({"k": pa.array([None if k % 7 == 3 else f"w{k}" for k in keys.tolist()]), "x": array})
    plan = GroupPlan(tuple(Aggregation(op, 0, op.name) for op in summing), states=True)
    for source in (
        keyed_arrays([("k", ArraySource(keys), "by.0")], [("x", ArraySource(array), "x")]),
        frame_source(words, ["k"], ["x"]),
    ):
        same(on_gpu(source, plan), CpuBackend().group_by(source, plan))


@pytest.mark.parametrize("keep_nulls", [False, True])
def test_tables_by_words_and_numbers_with_nulls(on_gpu: Any, keep_nulls: bool) -> None:
    random = np.random.default_rng(2)
    table = pa.table(
        {
            "word": pa.array([None if k == 3 else f"w{k}" for k in random.integers(0, 7, ROWS)]).dictionary_encode(),
            "number": pa.array([None if k == 5 else int(k) for k in random.integers(0, 9, ROWS)], pa.int64()),
            "x": pa.array(random.standard_normal(ROWS), mask=random.random(ROWS) < 0.1),
            "n": pa.array(random.integers(-5, 99, ROWS).astype(np.int8)),
        }
    )
    for keys in (["word"], ["word", "number"], ["number"]):
        for sort in (True, False):
            source = frame_source(table, keys, ["x", "n"])
            plan = plan_of(2, keep_nulls=keep_nulls, sort=sort)
            same(on_gpu(source, plan), CpuBackend().group_by(source, plan))


class OneAtATime(Backend):
    """A GPU that several threads may ask: the device code on the host runs in one thread at a time."""

    def __init__(self, group_by: Callable[[KeyedSource, GroupPlan], GroupTable]) -> None:
        self._group_by, self._lock, self.shares = group_by, Lock(), 0

    def aggregate(self, query: Query[Answer], progress: Any = None) -> Answer:
        assert isinstance(query, ByKey)
        with self._lock:
            self.shares += 1
            return cast(Answer, self._group_by(query.source, query.plan))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_gpus_that_share_rows_have_the_table_of_a_cpu(on_gpu: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "PART_ROWS", 1)
    random, row = np.random.default_rng(6), DTYPES[dtype]
    array = adversarial("special", row, ROWS, 1) if row.is_float else random.integers(-99, 99, ROWS, np.int32)
    keys = random.integers(-9, 30, ROWS).astype(np.int32)
    words = pa.table({"k": pa.array([None if k == 3 else f"w{k}" for k in keys.tolist()]), "x": array})
    gpu = OneAtATime(on_gpu)
    for source, sort in (
        (keyed_arrays([("k", ArraySource(keys), "by.0")], [("x", ArraySource(array), "x")]), True),
        (in_parts(frame_source(words, ["k"], ["x"]), 100), False),
    ):
        asked = tuple(Aggregation(op, 0, op.name) for op in EVERY)
        plan = GroupPlan(asked, sort=sort, nan_policy=NanPolicy.OMIT, keep_nulls=sort)
        before = gpu.shares
        same(group_shares([gpu, gpu, gpu], source, plan), CpuBackend().group_by(source, plan))
        assert gpu.shares == before + 3


def test_a_share_names_a_nan_by_its_row_of_all(on_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.ones(50, np.float32)
    array[41] = np.nan
    monkeypatch.setattr(shares, "PART_ROWS", 1)
    rows = in_parts(frame_source(pa.table({"k": [str(k) for k in range(50)], "x": array}), ["k"], ["x"]), 8)
    gpu = OneAtATime(on_gpu)
    with pytest.raises(InvalidInput, match="row 41 of 'x' is NaN, and nan_policy is raise"):
        group_shares([gpu, gpu], rows, plan_of(1, nan_policy=NanPolicy.RAISE))
    assert gpu.shares == 2


def test_what_a_gpu_does_not_compute_is_refused(on_gpu: Any) -> None:
    array = ArraySource(np.ones(5, np.float32))
    source = keyed_arrays([("k", ArraySource(np.arange(5, dtype=np.int32)), "by.0")], [("x", array, "x")])
    plan = GroupPlan((Aggregation(op_named("prod"), 0, "x"),))
    with pytest.raises(
        InvalidInput, match=r"by key a GPU computes .*: prod of float32 needs the backend cpu"
    ) as caught:
        on_gpu(source, plan)
    assert caught.value.field == "backend"


def test_too_many_groups_and_nans_name_their_fields(on_gpu: Any) -> None:
    array = np.ones(50, np.float32)
    array[7] = np.nan
    source = keyed_arrays([("k", ArraySource(np.arange(50, dtype=np.int32)), "by.0")], [("x", ArraySource(array), "x")])
    table = frame_source(pa.table({"k": [str(k) for k in range(50)], "x": array}), ["k"], ["x"])
    for rows in (source, table):
        with pytest.raises(InvalidInput, match="more than 9 groups: 50 were reached") as caught:
            on_gpu(rows, plan_of(1, max_groups=9))
        assert caught.value.field == "max_groups"
    with pytest.raises(InvalidInput, match="row 7 of 'x' is NaN, and nan_policy is raise"):
        on_gpu(table, plan_of(1, nan_policy=NanPolicy.RAISE))


def test_no_rows_make_no_groups(on_gpu: Any) -> None:
    for source in (
        keyed_arrays(
            [("k", ArraySource(np.zeros(0, np.int32)), "by.0")], [("x", ArraySource(np.zeros(0, np.float32)), "x")]
        ),
        frame_source(pa.table({"k": pa.array([], pa.string()), "x": pa.array([], pa.float64())}), ["k"], ["x"]),
        frame_source(pa.table({"k": pa.array([], pa.int8()), "x": pa.array([], pa.int64())}), ["k"], ["x"]),
    ):
        same(on_gpu(source, plan_of(1)), CpuBackend().group_by(source, plan_of(1)))
