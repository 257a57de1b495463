"""Files that are submitted: specs, arrays and patterns of both, which are one batch."""

import hashlib
import json

import numpy as np
import pytest

from tests.support.shell import Shell
from warpfold.client.cli import spec_files


def spec(*values: float, **more: object) -> str:
    return json.dumps({"source": {"type": "values", "values": values, "dtype": "float64"}, **more})


@pytest.fixture
def runs(shell: Shell) -> Shell:
    """A shell with arrays and specs in its folder."""
    folder = shell.folder / "runs"
    folder.mkdir()
    np.save(folder / "b.npy", np.array([1e16, 1.0, -1e16]))
    np.save(folder / "a.npy", np.array([3.0, 4.0]))
    (folder / "c.yaml").write_text("op: max\nsource: {type: values, values: [5, 7]}\n")
    (folder / "d.jsonl").write_text(f"{spec(1, 2)}\n\n{spec(3, 9)}\n")
    (folder / "e.csv").write_text("x,y\n1,2\n3,4\n")
    return shell


def test_a_pattern_of_arrays_is_a_batch_whose_outcomes_name_the_files(runs: Shell) -> None:
    waited = runs.run("submit", "runs/*.npy", "--op", "sum", "--wait")
    assert waited.code == 0, waited.err
    rows = [line.split() for line in waited.out.splitlines()[1:]]
    assert [(row[0], row[4]) for row in rows] == [("runs/a.npy", "7.0"), ("runs/b.npy", "1.0")]
    again = runs.run("submit", "runs/*.npy", "--op", "max", "--wait", "--json")
    outcomes = [json.loads(line) for line in again.out.splitlines()]
    assert [(each["file"], each["value"]) for each in outcomes] == [("runs/a.npy", 4.0), ("runs/b.npy", 1e16)]
    assert "*.npy" in runs.run("batches", "list").out


def test_files_of_all_sorts_are_one_batch_and_options_hold_for_all(runs: Shell) -> None:
    files = ("runs/a.npy", "runs/[c-d].*")
    outcomes = runs.run("submit", *files, "--tag", "run:1", "--wait", "--json").out.splitlines()
    assert [(each["file"], each["value"]) for each in map(json.loads, outcomes)] == [
        ("runs/a.npy", 7.0),
        ("runs/c.yaml", 7),
        ("runs/d.jsonl:1", 3.0),
        ("runs/d.jsonl:3", 12.0),
    ]
    assert all(json.loads(each)["spec"]["tags"] == {"run": "1"} for each in outcomes)


def test_a_single_array_is_a_job(runs: Shell) -> None:
    ended = runs.run("submit", "runs/b.npy", "--wait", "--json")
    assert json.loads(ended.out)["result"]["value"] == 1.0
    column = runs.run("submit", "runs/e.csv", "--set", "source.column=y", "--wait", "--json")
    assert json.loads(column.out)["result"]["value"] == 6


def test_a_refusal_names_the_file_and_keeps_no_job(runs: Shell) -> None:
    before = runs.run("jobs", "--json").out
    (runs.folder / "runs" / "c.yaml").write_text("op: total\nsource: {type: values, values: [5, 7]}\n")
    refused = runs.run("submit", "runs/*.npy", "runs/*.yaml")
    assert refused.code == 4
    assert "runs/c.yaml: op: unknown op 'total'" in refused.err
    assert runs.run("jobs", "--json").out == before


def test_a_dry_run_sends_nothing(runs: Shell) -> None:
    np.save(runs.folder / "runs" / "apart.npy", np.array([8.5]))
    digest = hashlib.sha256((runs.folder / "runs" / "apart.npy").read_bytes()).hexdigest()
    shown = runs.run("submit", "runs/ap*.npy", "--op", "max", "--dry-run")
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"kind": "reduce", "op": "max", "source": {"type": "dataset", "id": digest}}
    ]
    assert digest not in runs.run("dataset", "list").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("runs/*.parquet",), "no file fits 'runs/*.parquet'"),
        (("runs/*.npy", "-"), "standard input cannot be combined with files"),
        (("runs/a.npy", "--values", "1 2"), "options name other elements"),
        (("runs/*.npy", "runs/missing.json"), "missing.json"),
    ],
)
def test_what_cannot_be_submitted_is_an_error_of_usage(runs: Shell, words: tuple[str, ...], says: str) -> None:
    run = runs.run("submit", *words)
    assert run.code == 2
    assert says in " ".join(run.err.split())


def test_too_many_files_are_refused_before_any_is_sent(runs: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_files, "MOST_JOBS", 1)
    run = runs.run("submit", "runs/*.npy")
    assert run.code == 2
    assert "is one too many" in " ".join(run.err.split())


def test_a_name_that_an_anchor_brings_may_be_written_once_more() -> None:
    """Merging, in the order in which mappings are read, shows a name twice that is written once."""
    text = "base: &b {x: 1}\na:\n  b: &m {<<: *b, x: 2}\ntop: {<<: *m}\n"
    assert spec_files.read_yaml(text) == {"base": {"x": 1}, "a": {"b": {"x": 2}}, "top": {"x": 2}}
