"""What the child of the CPU slot makes of specs, as the results say it."""

import hashlib
import json
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from numba.core.compiler_lock import global_compiler_lock

from tests.support.leases import lease_on
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.states import Reason
from warpfold.contract.tasks import task_spec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.worker.execute import Kernels, _digest
from warpfold.worker.failures import failure_of
from warpfold.worker.kinds import reduce
from warpfold.worker.messages import News, Progress, Timed


@pytest.fixture
def kernels(data_root: Path) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((data_root,), data_root))


def silent(news: News) -> None:
    pass


def lease(spec: Mapping[str, Any] | str, *, child_died: bool = False) -> Lease:
    text = spec if isinstance(spec, str) else json.dumps({"kind": "reduce", **spec})
    return lease_on(text, attempt=2, queued_ms=12.5, child_died=child_died)


def run(kernels: Kernels, **spec: Any) -> Success:
    return kernels.run(lease(spec), silent)


def values(*numbers: float | str, dtype: str = "float64") -> dict[str, Any]:
    return {"type": "values", "values": list(numbers), "dtype": dtype}


def test_a_result_says_all_that_is_known_of_it(kernels: Kernels) -> None:
    success = run(kernels, op="sum", source=values(1e8, 1, -1e8, dtype="float32"))
    result = ReduceResult.model_validate(success.result)
    assert (result.value, result.hex, result.dtype, result.count) == (1.0, "0x1.0000000000000p+0", "float32", 3)
    assert (result.op, result.strategy, result.backend, result.correctly_rounded) == ("sum", "exact", "cpu", True)
    assert result.device.backend == "cpu"
    assert result.timings.queued_ms == 12.5
    assert 0 < result.timings.total_ms < 60_000
    assert result.state is not None
    provenance = result.provenance
    assert (provenance.worker, provenance.attempt, provenance.seed) == ("here:cpu", 2, None)
    assert "numpy" in provenance.libraries
    assert provenance.warpfold


class Enough(Exception):
    """The job need not go on."""


def test_a_job_that_takes_times_says_so_before_it_does(kernels: Kernels) -> None:
    def tell(news: News) -> None:
        assert news == Timed()
        raise Enough

    with pytest.raises(Enough):
        kernels.run(lease({"kind": "benchmark", "strategies": ["numpy"], "dtypes": ["float32"], "sizes": [8]}), tell)
    heard: list[News] = []
    kernels.run(lease({"source": values(1)}), heard.append)
    assert Timed() not in heard


@pytest.mark.parametrize(
    ("op", "source", "value"),
    [
        ("sum", values(1e16, 1.0), "1e+16"),
        ("sum", values("inf"), "inf"),
        ("sum", values(-0.0), "-0.0"),
        ("prod", values(*[1 << 40] * 3, dtype="int64"), str(1 << 120)),
        ("any", values(0, 1, dtype="int64"), "True"),
    ],
)
def test_the_point_of_a_reduction_has_its_value(kernels: Kernels, op: str, source: dict[str, Any], value: str) -> None:
    (point,) = run(kernels, op=op, source=source).points
    assert point.value == value


def test_the_digest_of_a_spec_does_not_depend_on_the_order_of_its_fields(kernels: Kernels) -> None:
    specs = (
        '{"kind": "reduce", "op": "max", "source": {"type": "values", "values": [1, 2]}}',
        '{"source":{"values":[1,2],"type":"values"},"op":"max","kind":"reduce"}',
        '{"source":{"values":[1,3],"type":"values"},"op":"max","kind":"reduce"}',
    )
    results = [ReduceResult.model_validate(kernels.run(lease(spec), silent).result) for spec in specs]
    digests = [result.provenance.spec_sha256 for result in results]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("numbers", "hex_"),
    [(("inf", "-inf"), "nan"), (("nan", 1.0), "nan"), (("-inf", 1.0), "-inf"), ((-0.0, -0.0), "-0x0.0p+0")],
)
def test_every_result_is_json_that_any_reader_takes(
    kernels: Kernels, numbers: tuple[float | str, ...], hex_: str
) -> None:
    success = run(kernels, op="sum", source=values(*numbers))
    result = ReduceResult.model_validate_json(json.dumps(success.result, allow_nan=False))
    assert float(result.number).hex() == hex_ == result.hex


def test_a_seed_is_part_of_the_provenance(kernels: Kernels) -> None:
    source = {"type": "generate", "distribution": "normal", "n": 1000, "seed": 2**64 - 1, "dtype": "float32"}
    result = ReduceResult.model_validate(run(kernels, op="mean", source=source).result)
    assert result.provenance.seed == 2**64 - 1


def test_a_measurement_counts_what_was_read(kernels: Kernels) -> None:
    source = {"type": "generate", "distribution": "zeros", "n": 1000, "dtype": "float16"}
    (point,) = run(kernels, op="count_nonzero", source=source).points
    assert (point.op, point.dtype, point.n, point.bytes, point.backend) == (
        "count_nonzero",
        "float16",
        1000,
        2000,
        "cpu",
    )
    assert point.kernel_ms is not None
    assert point.kernel_ms >= 0


def test_only_a_first_run_prepares_and_its_measurement_says_so(kernels: Kernels) -> None:
    first, second = (run(kernels, op="max", source=values(1, 2, dtype="int16")) for _ in range(2))
    timings = [ReduceResult.model_validate(success.result).timings for success in (first, second)]
    assert timings[0].prepare_ms > 0
    assert timings[0].prepare_ms + timings[0].load_ms + timings[0].kernel_ms <= timings[0].total_ms
    assert timings[1].prepare_ms == 0.0
    assert [success.points[0].prepare_ms for success in (first, second)] == [timing.prepare_ms for timing in timings]
    assert [success.points[0].flags for success in (first, second)] == [["first_run"], []]


def test_what_compiles_while_a_source_is_opened_prepares_too(
    kernels: Kernels, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiling() -> None:
        with global_compiler_lock:
            time.sleep(0.02)

    np.save(data_root / "a.npy", np.ones(7))
    run(kernels, op="sum", source=values(1, 2))  # so that nothing else is prepared
    monkeypatch.setattr(reduce, "survive_cuts", compiling)
    success = run(kernels, op="sum", source={"type": "path", "path": "a.npy"})
    timings = ReduceResult.model_validate(success.result).timings
    assert timings.prepare_ms >= 20.0
    assert timings.load_ms + timings.kernel_ms < timings.total_ms - 20.0
    assert success.points[0].prepare_ms == timings.prepare_ms


def test_a_file_is_reduced(kernels: Kernels, data_root: Path) -> None:
    array = np.random.default_rng(1).normal(size=(300, 7))
    np.save(data_root / "a.npy", array)
    result = ReduceResult.model_validate(run(kernels, op="sum", source={"type": "path", "path": "a.npy"}).result)
    assert result.value == math.fsum(array.ravel())
    assert result.count == 2100


def test_argmin_of_a_file_in_fortran_order_counts_in_c_order(kernels: Kernels, data_root: Path) -> None:
    array = np.asfortranarray(np.array([[5.0, 4.0, 3.0], [9.0, 1.0, 7.0]]))
    np.save(data_root / "f.npy", array)
    result = ReduceResult.model_validate(run(kernels, op="argmin", source={"type": "path", "path": "f.npy"}).result)
    assert result.value == 4


def test_progress_is_told_in_bytes(kernels: Kernels) -> None:
    news: list[News] = []
    source = {"type": "generate", "distribution": "arange", "n": 50_000_000, "dtype": "float64"}
    kernels.run(lease({"op": "sum", "source": source}), news.append)
    steps = [news for news in news if isinstance(news, Progress)]
    assert steps
    assert {(step.total, step.unit) for step in steps} == {(400_000_000, "bytes")}
    assert [step.done for step in steps] == sorted(step.done for step in steps)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"op": "min", "source": values()}, "no elements"),
        ({"op": "sum", "source": values("nan"), "nan_policy": "raise"}, "NaN"),
        ({"op": "sum", "source": {"type": "path", "path": "missing.npy"}}, "'missing.npy' cannot be read"),
        ({"op": "prod", "source": values(*[2**60] * 300, dtype="int64")}, "decimal digits"),
    ],
)
def test_the_owners_mistakes_are_told_in_a_sentence(kernels: Kernels, spec: dict[str, Any], message: str) -> None:
    asked = lease(spec)
    with pytest.raises(InvalidInput) as caught:
        kernels.run(asked, silent)
    failure = failure_of(caught.value, asked)
    assert (failure.reason, failure.replace) == (Reason.INVALID_INPUT, False)
    assert message in failure.error


@pytest.mark.parametrize("spec", ['{"kind": "juggle"}', "{}", '{"kind": "reduce", "op": "sum", "color": "red"}'])
def test_a_spec_of_another_version_fails_as_invalid(kernels: Kernels, spec: str) -> None:
    with pytest.raises(InvalidInput, match="this version cannot read the job's spec"):
        kernels.run(lease(spec), silent)


@pytest.mark.parametrize(
    "numbers",
    [
        [0.1, -0.0, 1e15, 1e16, 1.5e300, 5e-324, 0.0001, 0.00012, 0.00001234, 123456789.125],
        [1, -2, 3],
        [1.0, "nan", "0x1p-3"],
        [9999999999999998.0, 0.1 + 0.2, 1 / 3],
        [],
    ],
)
def test_the_digest_of_a_spec_is_that_of_its_canonical_json(numbers: list[object]) -> None:
    spec = task_spec.validate_python(
        {
            "kind": "reduce",
            "op": "dot",
            "source": {"type": "values", "values": numbers, "dtype": "float64"},
            "other": {"type": "values", "values": numbers, "dtype": "float64"},
            "tags": {"note": '"values":[1.5]', "other": "#0"},
        }
    )
    stored = spec.model_dump_json()
    canonical = json.dumps(json.loads(stored), sort_keys=True, separators=(",", ":"))
    assert _digest(stored) == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_digest_of_random_floats_is_that_of_their_canonical_json() -> None:
    rng = random.Random(1)
    for scale in (1.0, 1e-3, 1e14, 1e17):
        source = {"type": "values", "values": [rng.gauss(0, scale) for _ in range(500)], "dtype": "float64"}
        stored = task_spec.validate_python({"kind": "reduce", "op": "sum", "source": source}).model_dump_json()
        canonical = json.dumps(json.loads(stored), sort_keys=True, separators=(",", ":"))
        assert _digest(stored) == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_stages_of_a_job_are_told_with_the_one_that_bounds_it(kernels: Kernels, data_root: Path) -> None:
    numbers = np.random.default_rng(3).standard_normal(300_000)
    np.save(data_root / "x.npy", numbers)
    pyarrow.parquet.write_table(pyarrow.table({"x": numbers}), data_root / "x.parquet", row_group_size=40_000)
    pyarrow.csv.write_csv(pyarrow.table({"x": numbers[:1000]}), data_root / "x.csv")
    np.savez_compressed(data_root / "x.npz", x=numbers)
    generated = {"type": "generate", "distribution": "normal", "n": 300_000, "dtype": "float64"}
    for source, stages in [
        (values(1.0, 2.0), {"reduce"}),
        (generated, {"read", "reduce"}),
        ({"type": "path", "path": "x.npy"}, {"read", "reduce"}),
        ({"type": "table", "path": "x.parquet"}, {"decode", "reduce"}),
        ({"type": "table", "path": "x.csv"}, {"decode", "reduce"}),
        ({"type": "array", "path": "x.npz"}, {"decode", "reduce"}),
        ({"type": "files", "paths": ["x.npy", "x.npy"]}, {"read", "reduce"}),
    ]:
        for strategy in ("exact", "numpy"):
            result = ReduceResult.model_validate(run(kernels, op="sum", strategy=strategy, source=source).result)
            timings = result.timings
            assert set(timings.stages) == stages, (source, strategy)
            assert timings.bound == max(timings.stages, key=lambda name: timings.stages[name].seconds)
            for stage in timings.stages.values():
                assert stage.bytes == 8 * result.count
                assert stage.seconds * 1e3 <= timings.total_ms, "stages overlap within the job"
                assert stage.gb_per_s == pytest.approx(stage.bytes / stage.seconds / 1e9)


@pytest.mark.parametrize("name", ["x.npy", "fortran.npy"])
def test_a_file_that_changes_while_it_is_read_fails_its_job_and_not_the_process(
    kernels: Kernels, data_root: Path, name: str
) -> None:
    numbers = np.ones((300, 1000))
    spec = {"op": "sum", "source": {"type": "path", "path": name}}
    for change in (lambda: os.truncate(data_root / name, 5000), lambda: os.utime(data_root / name, (1, 1))):
        np.save(data_root / "x.npy", numbers)
        np.save(data_root / "fortran.npy", np.asfortranarray(numbers))
        changed: list[bool] = []

        def tell(news: News, change: Callable[[], None] = change, changed: list[bool] = changed) -> None:
            if isinstance(news, Progress) and not changed:  # at the latest when all was read, before the result
                changed.append(True)
                change()

        with pytest.raises(InvalidInput, match=r"changed while it was read|became shorter"):
            kernels.run(lease(spec), tell)
        assert changed


def _stored(folder: Path, name: str, array: np.ndarray[Any, Any], *, damaged: bool) -> None:
    """An archive of two members, whose first one has a changed digit."""
    np.savez(folder / name, x=array, y=array)
    if damaged:
        content = bytearray((folder / name).read_bytes())
        at = content.index(array.tobytes()) + array.nbytes // 2
        content[at] ^= 1
        (folder / name).write_bytes(content)


READ_WHOLE: Mapping[str, Mapping[str, Any]] = {
    "an array": {"source": {"type": "array", "path": "3.npz", "array": "x"}},
    "two arrays": {
        "op": "dot",
        "source": {"type": "array", "path": "0.npz", "array": "x"},
        "other": {"type": "array", "path": "3.npz", "array": "x"},
    },
    "along an axis": {"axis": 0, "source": {"type": "array", "path": "3.npz", "array": "x"}},
    "files of a pattern": {"source": {"type": "files", "glob": "*.npz", "array": "x"}},
    "groups": {
        "kind": "groupby",
        "by": [{"name": "k", "source": {"type": "array", "path": "0.npz", "array": "x"}}],
        "aggregations": [{"op": "sum", "source": {"type": "array", "path": "3.npz", "array": "x"}}],
    },
}


@pytest.mark.parametrize("most_open", [64, 2])
@pytest.mark.parametrize("read", READ_WHOLE)
def test_a_changed_bit_of_a_stored_member_fails_the_job_that_reads_all_of_it(
    kernels: Kernels, data_root: Path, monkeypatch: pytest.MonkeyPatch, read: str, most_open: int
) -> None:
    monkeypatch.setattr(ChainedSource, "MOST_OPEN", most_open)
    array = np.random.default_rng(2).integers(-99, 99, (50, 20))
    for number in range(6):
        _stored(data_root, f"{number}.npz", array, damaged=number == 3)
    with pytest.raises(InvalidInput, match=r"3\.npz.* is damaged: the checksum of 'x' is not that of its bytes"):
        run(kernels, **READ_WHOLE[read])
    for number in range(6):
        _stored(data_root, f"{number}.npz", array, damaged=False)
    run(kernels, **READ_WHOLE[read])


def test_an_attempt_after_a_death_whose_files_another_process_reads_first_says_the_same(
    kernels: Kernels, data_root: Path
) -> None:
    for damaged in (True, False):
        _stored(data_root, "3.npz", np.arange(1000), damaged=damaged)
        again = lease(READ_WHOLE["an array"], child_died=True)
        if damaged:
            with pytest.raises(InvalidInput, match=r"3\.npz.* is damaged: the checksum of 'x' is not that of"):
                kernels.run(again, silent)
        else:
            assert kernels.run(again, silent).result["value"] == 499_500


def test_of_a_part_of_a_stored_member_no_checksum_is_known(kernels: Kernels, data_root: Path) -> None:
    _stored(data_root, "x.npz", np.arange(1000), damaged=True)
    whole = {"type": "array", "path": "x.npz", "array": "y"}
    assert run(kernels, source=whole).result["value"] == 499_500
    part = {**whole, "array": "x", "select": [{"stop": 10}]}
    assert run(kernels, source=part).result["value"] == 45
