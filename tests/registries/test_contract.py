"""Every kind of job, every source and every measured column answers the questions that all must answer.

A failure names what is missing: this file is the list of what a new row needs.
"""

import inspect
import json
from itertools import chain
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import TypeAdapter

from warpfold.app.dashboard.forms.schema import kinds as kinds_of_forms
from warpfold.app.reports.kinds.registry import PRESENTATIONS
from warpfold.app.results.repository import MeasurementFilter
from warpfold.app.results.views import MeasurementView
from warpfold.app.tables.measurements import measurements
from warpfold.client import job_results, results
from warpfold.contract import needs, sources
from warpfold.contract.fields import FloatName, JobOptions
from warpfold.contract.folders import Folders
from warpfold.contract.frozen import Frozen
from warpfold.contract.jobs import KINDS, SPECS, JobResult, Kind, job_spec, summary_of
from warpfold.contract.kinds.spec import Changes, LeftOut, Spec, Task
from warpfold.contract.measurement import FIELDS, FILTERS, PointDetails, PointHead
from warpfold.contract.sources import SOURCES, summary_of_source
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.tasks import TaskKind
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.kinds import runs
from warpfold.worker.kinds.attempt import Attempt

ROOT = Path(__file__).parents[2]
RESULTS: dict[str, list[type[Frozen]]] = {}
"""The results of each kind: a reduction has two, one of them an array."""
for member in get_args(JobResult):
    RESULTS.setdefault(member.__module__.rpartition(".")[2], []).append(member)
A_SOURCE: dict[str, dict[str, Any]] = {
    "values": {"values": [1, 2], "dtype": "float32"},
    "generate": {"distribution": "normal", "n": 2000},
    "path": {"path": "a.npy"},
    "dataset": {"id": "0" * 64},
    "upload": {"id": "0" * 32},
    "array": {"path": "a.h5", "array": "g/x", "select": [0, {"stop": 10}]},
    "table": {"path": "a.parquet", "column": "x", "filter": {"op": "==", "column": "y", "value": 1}},
    "files": {"glob": "run-*/*.npy"},
}


def lacking(what: str, missing: object) -> str:
    return f"no {what} for {missing}"


def examples_of(spec: type[Spec]) -> list[dict[str, Any]]:
    return list(spec.model_json_schema().get("examples", ()))


def tasks() -> list[str]:
    return [kind for kind, spec in SPECS.items() if issubclass(spec, Task)]


@pytest.mark.parametrize("kind", SPECS)
class TestAKind:
    def test_stands_in_every_list_of_kinds(self, kind: str) -> None:
        assert kind in get_args(Kind), lacking("place in TaskKind of contract/tasks.py", kind)
        assert (kind in get_args(TaskKind)) == issubclass(SPECS[kind], Task), lacking("place in TaskKind", kind)
        assert kind in RESULTS, lacking("result in LaterResult of contract/tasks.py", kind)
        assert set(KINDS) == set(SPECS) == set(RESULTS)

    def test_is_one_file_with_its_spec_and_its_result(self, kind: str) -> None:
        module = f"warpfold.contract.kinds.{kind}"
        assert SPECS[kind].__module__ == module, lacking(f"{module} of both", kind)
        assert (SPECS[kind].__doc__ or "").strip(), lacking("description of the spec", kind)
        for result in RESULTS[kind]:
            assert (result.__doc__ or "").strip(), lacking("description of the result", kind)

    def test_has_an_example_that_is_a_spec(self, kind: str) -> None:
        assert examples_of(SPECS[kind]), lacking("example in the schema", kind)
        for example in examples_of(SPECS[kind]):
            assert type(job_spec.validate_python(example)) is SPECS[kind]

    def test_has_a_line_a_description_and_a_brief_form(self, kind: str) -> None:
        for example in examples_of(SPECS[kind]):
            spec = job_spec.validate_python(example)
            stored = json.loads(spec.model_dump_json())
            assert summary_of(kind, stored) not in ("", kind), lacking("summary", kind)
            assert spec.description(), lacking("description", kind)
            brief = spec.brief()
            shown = stored if brief is None else json.loads(brief.model_dump_json())
            assert shown["kind"] == kind
            assert summary_of(kind, shown), lacking("summary of the brief form", kind)
        assert summary_of(kind, {}), "a spec of a version without any of the fields has a line, too"

    def test_has_every_field_in_its_brief_form_if_it_has_one(self, kind: str) -> None:
        spec = SPECS[kind]
        for form in get_args(get_type_hints(spec.brief)["return"]):
            if issubclass(form, JobOptions) and form is not JobOptions:
                # A brief spec of groups has its number of rows in place of the source.
                missing = set(spec.model_fields) - set(form.model_fields) - {"source"}
                assert not missing, lacking(f"field {missing} of the brief form", kind)

    def test_has_a_result_that_no_other_kind_has(self, kind: str) -> None:
        for result in RESULTS[kind]:
            assert issubclass(result, Frozen), lacking("Frozen base", result.__name__)
            others: list[set[object]] = [
                set(other.model_fields) for other in chain(*RESULTS.values()) if other is not result
            ]
            assert set(result.model_fields) - set.union(*others), lacking("field of its own", result.__name__)

    def test_is_offered_by_the_forms(self, kind: str) -> None:
        assert kind in kinds_of_forms(), lacking("form", kind)

    def test_is_described_in_the_docs(self, kind: str) -> None:
        text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
        assert f'"kind": "{kind}"' in text or f"`{kind}`" in text, lacking("mention in docs/", kind)

    def test_has_tables_or_says_that_it_has_none(self, kind: str) -> None:
        for result in RESULTS[kind]:
            assert result in PRESENTATIONS, lacking("row in app/reports/kinds/registry.py", result.__name__)

    def test_has_a_result_that_the_client_reads(self, kind: str) -> None:
        """As a model of its own, whose fields are those of the service, or as any other result."""
        for result in RESULTS[kind]:
            model = getattr(job_results, result.__name__, job_results.OtherResult)
            unknown = set(model.model_fields) - set(result.model_fields)
            assert not unknown, f"the client expects {unknown} in {kind}, which the service does not say"
            assert model in get_args(get_args(job_results.Result)[0])


@pytest.mark.parametrize("kind", tasks())
class TestATask:
    def test_names_the_slots_that_can_run_it(self, kind: str) -> None:
        for example in examples_of(SPECS[kind]):
            task = job_spec.validate_python(example)
            assert isinstance(task, Task)
            assert task.needs() in needs.ALL, lacking("slot", kind)

    def test_is_run_by_a_worker(self, kind: str) -> None:
        run = runs().get(kind)
        assert run is not None, lacking("worker/kinds module", kind)
        attempt, spec = inspect.signature(run).parameters.values()
        assert attempt.annotation is Attempt
        assert spec.annotation is SPECS[kind], f"worker/kinds/{kind}.py runs {spec.annotation}"

    @pytest.mark.parametrize("changes", [Changes(max_n=8), Changes(time_limit_s=0.1), Changes(backend="cpu")])
    def test_can_be_changed_by_a_preset_or_says_why_not(self, kind: str, changes: Changes) -> None:
        for example in examples_of(SPECS[kind]):
            task = job_spec.validate_python(example)
            assert isinstance(task, Task)
            try:
                changed = task.changed(changes)
            except LeftOut as left:
                why = str(left)
            else:
                why = type(changed).__name__
                assert type(changed) is SPECS[kind]
            assert why, lacking("reason why it cannot be changed", kind)

    def test_says_which_seed_makes_its_data(self, kind: str) -> None:
        for example in examples_of(SPECS[kind]):
            spec = {**example, "seed": 7} if "seed" in SPECS[kind].model_fields else example
            task = job_spec.validate_python(spec)
            assert isinstance(task, Task)
            if "seed" in SPECS[kind].model_fields:
                assert task.data_seed() == 7, lacking("seed in the provenance", kind)


@pytest.mark.parametrize("name", SOURCES)
class TestASource:
    def test_is_one_file(self, name: str) -> None:
        assert SOURCES[name].__module__ == f"warpfold.contract.sources.{name}"
        assert (SOURCES[name].__doc__ or "").strip(), lacking("description", name)

    def test_has_an_example_here_with_a_line_and_an_identity(self, name: str) -> None:
        source = self.example(name)
        stored = json.loads(source.model_dump_json())
        assert summary_of_source(stored) != "nothing", lacking("summary", name)
        assert source.summary(json.loads(source.brief().model_dump_json())), lacking("summary of the brief form", name)
        assert source.identity(), lacking("identity", name)

    def test_says_before_it_is_opened_what_it_will_open(self, name: str, tmp_path: Path) -> None:
        source = self.example(name)
        if source.known_dtype is None:  # only a worker knows, and here there is no file
            error = self.refusal(source, tmp_path)
            assert error is not None, lacking("known_dtype and known_count, though it needs no file", name)
            assert (error.field or "").startswith("source."), lacking("field that is at fault", name)
            return
        elements = source.open(Folders((), tmp_path))
        assert (source.known_dtype, source.known_count) == (elements.dtype, elements.count)

    def test_gives_no_more_elements_than_a_preset_asks_for_if_it_makes_them(self, name: str) -> None:
        source = self.example(name).shortened(1)
        assert source.generator_seed is None or source.known_count == 1, lacking("shorter form", name)

    @staticmethod
    def refusal(source: SourceSpec, folder: Path) -> InvalidInput | None:
        try:
            source.open(Folders((), folder))
        except InvalidInput as error:
            return error
        return None

    @staticmethod
    def example(name: str) -> SourceSpec:
        assert name in A_SOURCE, lacking("example in this test", name)
        source: SourceSpec = TypeAdapter(sources.Source).validate_python({"type": name, **A_SOURCE[name]})
        return source


class TestAMeasuredColumn:
    def test_is_stored_shown_and_read_by_the_client(self) -> None:
        names = [field.name for field in FIELDS]
        origin = ["id", "job_id", "created_at"]
        assert sorted(measurements.c.keys()) == sorted(origin + names)
        for model in (MeasurementView, results.Measurement):
            shown = [name for name in model.model_fields if name in names]
            assert shown == names
            assert list(model.model_fields)[:3] == origin

    def test_is_no_text_of_any_length_where_it_is_a_filter(self) -> None:
        widths = {field.name: field.stored.width for field in FIELDS if field.stored.filter and field.type is str}
        assert None not in widths.values(), widths

    def test_is_offered_as_a_filter_wherever_it_says_so(self) -> None:
        assert set(FILTERS) <= set(MeasurementFilter.model_fields), "app/results/repository.py"
        assert set(FILTERS) <= set(results.Filter.__annotations__), "client/results.py"

    def test_has_no_field_in_two_halves(self) -> None:
        assert not set(PointHead.model_fields) & set(PointDetails.model_fields)


@pytest.mark.parametrize("flag", Flag)
def test_a_flag_is_offered_described_and_explained(flag: Flag) -> None:
    filters = (get_args(each) for each in get_args(get_type_hints(results.Filter)["flag"]))
    assert flag in chain(*filters), lacking("flag of Filter in client/results.py", flag)
    for place, text in (
        ("contract/measurement.py", PointDetails.model_fields["flags"].description),
        ("client/cli/results.py", (ROOT / "client/cli/results.py").read_text(encoding="utf-8")),
        ("docs/benchmarks.md", (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")),
    ):
        assert flag in str(text), lacking(f"mention in {place}", flag)


def test_every_float_dtype_has_a_name_that_accuracy_studies_take() -> None:
    missing = {row.name for row in DTYPES.values() if row.is_float} - set(get_args(FloatName))
    assert not missing, lacking("name in FloatName of contract/fields.py", missing)
