"""Groups by key on all GPUs together: the table of one GPU, and of a CPU."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from tests.support.gpu.adversarial import adversarial
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import ArtefactFolder, Folders
from warpfold.kernels.catalog import keyed_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.scaling.placement import Gang
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, NullPolicy, op_named
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.worker.execute import Kernels

ROWS = 270_009  # more than two parts of rows that are read


@pytest.fixture(scope="module")
def gang(backend: CudaBackend) -> Gang:
    if len(visible_devices()) < 2:
        pytest.skip("a gang has several GPUs, and there is one")
    return Gang()


def arrays(keys: Any, *columns: Any) -> KeyedSource:
    named = [(f"x{number}", ArraySource(column), f"aggregations.{number}") for number, column in enumerate(columns)]
    return keyed_arrays([("k", keys if isinstance(keys, pa.Array) else ArraySource(keys), "by.0")], named)


def plan_of(dtype: str, **options: Any) -> GroupPlan:
    able = [op for op in OPS.values() if op.sources == 1 and "cuda" in keyed_backends(op, DTYPES[dtype])]
    return GroupPlan(tuple(Aggregation(op, 0, op.name) for op in able), **options)


def same(made: GroupTable, wanted: GroupTable) -> None:
    assert [array.to_pylist() for array in made.keys] == [array.to_pylist() for array in wanted.keys]
    assert [array.type for array in made.keys] == [array.type for array in wanted.keys]
    assert (made.sizes.tolist(), made.dropped) == (wanted.sizes.tolist(), wanted.dropped)
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert mine.counts.tolist() == theirs.counts.tolist(), mine.op
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
        for states, others in zip(mine.states, theirs.states, strict=True):
            assert (states.data.tobytes(), states.offsets.tolist()) == (others.data.tobytes(), others.offsets.tolist())
    assert made.described == wanted.described


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "bool"])
def test_every_op_by_integer_keys(gang: Gang, backend: CudaBackend, dtype: str) -> None:
    random, row = np.random.default_rng(1), DTYPES[dtype]
    if row.is_float:
        array = adversarial("special", row, ROWS, 1)
    else:
        array = random.choice(np.array([*row.bounds, 0, 1], object), ROWS).astype(row.numpy)
    for number, groups in enumerate((3, 2000, 30_000)):
        keys = random.integers(-7, groups - 7, ROWS).astype(np.int32 if number % 2 else np.int64)
        source = arrays(np.sort(keys) if number == 1 else keys, array)
        plan = plan_of(dtype, sort=number != 0, nan_policy=NanPolicy.OMIT if row.is_float else NanPolicy.PROPAGATE)
        made = gang.group_by(source, plan)
        for on in (backend, CpuBackend()):
            same(made, on.group_by(source, plan))


def test_states_of_all_shares_are_those_of_a_cpu(gang: Gang) -> None:
    keys = np.random.default_rng(2).integers(0, 900, ROWS).astype(np.int32)
    source = arrays(keys, adversarial("any finite", DTYPES["float64"], ROWS, 3))
    plan = GroupPlan(tuple(Aggregation(op_named(op), 0, op) for op in ("mean", "norm1", "norm2", "var")), states=True)
    same(gang.group_by(source, plan), CpuBackend().group_by(source, plan))


@pytest.mark.parametrize("null_policy", [NullPolicy.OMIT, NullPolicy.PROPAGATE])
def test_tables_by_words_and_numbers_with_nulls(gang: Gang, null_policy: NullPolicy) -> None:
    random = np.random.default_rng(4)
    words = [None if number == 3 else f"w{number}" for number in random.integers(0, 50, ROWS).tolist()]
    table = pa.table(
        {
            "word": pa.array(words).dictionary_encode(),
            "number": pa.array(random.integers(0, 9, ROWS), mask=random.random(ROWS) < 0.1),
            "x": pa.array(adversarial("special", DTYPES["float64"], ROWS, 5), mask=random.random(ROWS) < 0.1),
            "y": pa.array(random.integers(-(1 << 31), 1 << 31, ROWS).astype(np.int32)),
        }
    )
    ops = ("sum", "max", "argmin")
    asked = [Aggregation(op_named(op), number, f"{op} {number}") for op in ops for number in (0, 1)]
    for keys in (["word"], ["word", "number"], ["number"]):
        named = [[Wanted(name, name, name) for name in names] for names in (keys, ["x", "y"])]
        source = keyed_frame(frame_of(table), *named, refuse_nulls=False)
        for sort, keep_nulls in ((True, False), (False, True)):
            plan = GroupPlan(tuple(asked), sort=sort, keep_nulls=keep_nulls, null_policy=null_policy)
            same(gang.group_by(source, plan), CpuBackend().group_by(source, plan))


def test_rows_that_are_made_on_the_gpus(gang: Gang, backend: CudaBackend) -> None:
    made = (("uniform", "int16"), ("normal", "float32"))
    keys, elements = (GeneratedSource(name, 1 << 24, 3, DTYPES[dtype]) for name, dtype in made)
    source = keyed_arrays([("k", keys, "by.0")], [("x", elements, "aggregations.0")])
    plan = GroupPlan(tuple(Aggregation(op_named(op), 0, op) for op in ("sum", "mean", "max")))
    same(gang.group_by(source, plan), backend.group_by(source, plan))


def test_what_is_wrong_is_refused_as_by_one_gpu(gang: Gang, backend: CudaBackend) -> None:
    array = np.ones(ROWS, np.float32)
    array[ROWS - 5] = np.nan
    source = arrays(np.arange(ROWS, dtype=np.int32), array)
    plan = GroupPlan((Aggregation(op_named("sum"), 0, "x"),), nan_policy=NanPolicy.RAISE)
    for on in (gang, backend):
        with pytest.raises(InvalidInput, match=f"row {ROWS - 5} of 'x0' is NaN"):
            on.group_by(source, plan)
    few = GroupPlan((Aggregation(op_named("sum"), 0, "x"),), max_groups=ROWS - 1)
    with pytest.raises(InvalidInput, match=f"more than {ROWS - 1:,} groups: {ROWS:,} were reached"):
        gang.group_by(source, few)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("slot", ["cuda:0", "gang"])
def test_jobs_on_the_slots_of_gpus_have_the_results_of_a_cpu(slot: str, tmp_path: Path) -> None:
    if slot == "gang" and len(visible_devices()) < 2:
        pytest.skip("a gang has several GPUs, and there is one")
    folders = Folders((), tmp_path, artefacts=ArtefactFolder(tmp_path / "artefacts", 1 << 26, 0))
    made = {"type": "generate", "distribution": "normal", "n": 1 << 18, "dtype": "float32", "seed": 3}
    keys = {"type": "generate", "distribution": "modulo", "n": 1 << 18, "dtype": "int32"}
    groups = {"kind": "groupby", "by": [{"source": keys}], "aggregations": [{"op": "mean", "source": made}]}
    along = {"kind": "reduce", "op": "mean", "source": {**made, "shape": [1 << 9, 1 << 9]}, "axis": 0}
    slots = {name: Kernels(name, f"here:{name}", folders) for name in (slot, "cpu")}
    try:
        for spec, table in ((groups, ("keys", "columns", "sizes")), (along, ("values", "counts"))):
            for states in (False, True):
                results: list[dict[str, Any]] = []
                for name, kernels in slots.items():
                    text = json.dumps({**spec, "states": states, "backend": name.partition(":")[0]})
                    job = Lease(job_id=uuid4(), attempt=1, token=uuid4(), timeout_s=600.0, queued_ms=0.0, spec=text)
                    outcome = kernels.run(job, lambda news: None)
                    assert isinstance(outcome, Success), outcome
                    results.append(dict(outcome.result))
                first, second = results
                assert [first[name] for name in table] == [second[name] for name in table]
                assert (first["backend"], second["backend"]) == ("cuda", "cpu")
                if states:
                    hashes = [[part["sha256"] for part in each["artefact"]["parts"]] for each in results]
                    assert hashes[0] == hashes[1]
    finally:
        for kernels in slots.values():
            kernels.close()
