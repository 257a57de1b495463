import json

import pytest

from tests.support.shell import Shell

BENCHMARK = """
kind: benchmark
strategies: [numpy]
sizes: [1000]
backend: cpu
time_limit_s: 0.05
"""


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        (
            ("--values", "0.1 -0 1e400 0x1.8p+1 7", "--op", "max"),
            {
                "kind": "reduce",
                "op": "max",
                "source": {"type": "values", "values": [0.1, 0, "1e400", "0x1.8p+1", 7]},
            },
        ),
        (
            ("--generate", "normal", "--n", "5", "--seed", "1", "--priority", "high", "--time-limit", "2"),
            {
                "kind": "reduce",
                "priority": "high",
                "timeout_s": 2.0,
                "source": {"type": "generate", "distribution": "normal", "n": 5, "seed": 1},
            },
        ),
        (
            ("--path", "x.npy", "--strategy", "exact", "--backend", "cpu"),
            {"kind": "reduce", "strategy": "exact", "backend": "cpu", "source": {"type": "path", "path": "x.npy"}},
        ),
        (
            ("--dataset", "ab", "--backend", "dask", "--partitions", "64"),
            {"kind": "reduce", "backend": "dask", "partitions": 64, "source": {"type": "dataset", "id": "ab"}},
        ),
        (("--dataset", "ab"), {"kind": "reduce", "source": {"type": "dataset", "id": "ab"}}),
        (
            ("--kind", "benchmark", "--set", "sizes=[1, 2]", "--set", "data.seed=3", "--tag", "a:b:c"),
            {"kind": "benchmark", "sizes": [1, 2], "data": {"seed": 3}, "tags": {"a": "b:c"}},
        ),
        (
            ("--set", "source={type: values, values: [1.0e+400, .inf, -.inf, .nan, 9007199254740993, 1e3]}"),
            {
                "kind": "reduce",
                "source": {
                    "type": "values",
                    "values": ["1.0e+400", "inf", "-inf", "nan", 9007199254740993, "1e3"],
                },
            },
        ),
        (
            ("-", "--webhook", "https://hooks.example.org/x", "--n", "4"),
            {
                "kind": "reduce",
                "op": "mean",
                "source": {"type": "generate", "distribution": "normal", "n": 4},
                "webhook": {"url": "https://hooks.example.org/x"},
            },
        ),
        (
            ("-", "--n", "9", "--op", "sum"),
            {"kind": "reduce", "op": "sum", "source": {"type": "generate", "distribution": "normal", "n": 9}},
        ),
    ],
)
def test_options_and_files_become_a_spec(shell: Shell, words: tuple[str, ...], spec: object) -> None:
    stdin = '{"op": "mean", "source": {"type": "generate", "distribution": "normal", "n": 4}}'
    printed = shell.run("submit", *words, "--dry-run", stdin=stdin)
    assert printed.code == 0, printed.err
    assert json.loads(printed.out) == spec


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.yaml",), "missing.yaml: No such file or directory"),
        (("list.yaml",), "holds no spec"),
        (("broken.yaml",), "neither JSON nor YAML"),
        (("twice.yaml",), "twice.yaml, line 2: 'op' is written twice in one object"),
        (("--values", "1", "--path", "x.npy"), "--values and --path name different elements"),
        (("--set", "op"), "is not FIELD=VALUE"),
        (("--set", "op=["), "op=["),
        (("--set", "kind.x=1"), "is not an object"),
    ],
)
def test_what_is_no_spec_is_said(shell: Shell, words: tuple[str, ...], message: str) -> None:
    (shell.folder / "list.yaml").write_text("[1, 2]")
    (shell.folder / "broken.yaml").write_text("{")
    (shell.folder / "twice.yaml").write_text("op: sum\nop: max\n")
    done = shell.run("submit", *words)
    assert done.code == 2
    assert message.replace(" ", "") in done.err.replace("\n", "").replace("│", "").replace(" ", "")


def test_a_refused_field_is_named_on_a_line_of_its_own(shell: Shell) -> None:
    done = shell.run("submit", "--values", "1", "--dtype", "float3", "--op", "sun")
    lines = done.transcript.splitlines()
    assert lines[0] == "warpfold: refused:"
    assert [line.split(":")[0] for line in lines[1:-1]] == ["  op", "  source.dtype"]
    assert lines[-1] == "[exit code 4]"


def test_a_benchmark_from_a_file_becomes_results_and_a_report(shell: Shell) -> None:
    (shell.folder / "bench.yaml").write_text(BENCHMARK)
    job = json.loads(shell.run("submit", "bench.yaml", "--wait", "--json").out)
    assert job["status"] == "succeeded"
    table = shell.run("results", "--job", job["id"][:18]).transcript.splitlines()
    names = ["op", "dtype", "n", "strategy", "device", "cache", "ms", "GB/s", "% of ceiling", "error", "remarks"]
    assert table[0] == "  ".join(names)
    assert len(table) == 3
    rows = [json.loads(line) for line in shell.run("results", "--job", job["id"], "--json").out.splitlines()]
    assert {row["cache"] for row in rows} == {"cold", "hot"}
    csv = shell.run("results", "--job", job["id"], "--format", "csv", "-o", "points.csv")
    assert csv.out == ""
    assert (shell.folder / "points.csv").read_text().count("\n") == 3
    shell.run("results", "--job", job["id"], "--json", "-o", "points.jsonl")
    assert [json.loads(line) for line in (shell.folder / "points.jsonl").read_text().splitlines()] == rows
    for words in (("-o", "table.txt"), ("--json", "--format", "csv")):
        assert shell.run("results", *words).code == 2
    too_many = shell.run("results", "--format", "csv", "--limit", "10001")
    assert (too_many.code, "refused: limit: " in too_many.err) == (4, True)
    shell.run("results", "--job", job["id"], "--format", "parquet", "-o", "points.parquet")
    assert (shell.folder / "points.parquet").read_bytes()[:4] == b"PAR1"
    compared = shell.run("compare", job["id"], job["id"])
    assert "geometric mean of the speed-ups: 1.000" in compared.out


def test_a_report_is_printed_or_written(shell: Shell) -> None:
    job = json.loads(shell.run("submit", "--values", "1 2 3", "--wait", "--json").out)["id"]
    assert shell.run("report", job).out.startswith("# ")
    assert shell.run("report", job, "--format", "html", "-o", "report.html").code == 0
    assert "<html" in (shell.folder / "report.html").read_text()
    assert json.loads(shell.run("report", job, "--format", "json").out)["job_id"] == job
    nowhere = shell.spawn("report", job, "-o", "no/such/folder.md")
    assert (nowhere.code, nowhere.err) == (2, "warpfold: no/such/folder.md: No such file or directory\n")


def test_a_preset_runs(shell: Shell) -> None:
    listed = shell.run("presets", "--json").out.splitlines()
    assert "p05-three-numbers" in [json.loads(line)["name"] for line in listed]
    done = shell.run("run", "p05-three-numbers", "--wait", "--json", "--set", "backend=cpu")
    assert json.loads(done.out)["status"] == "succeeded", done.err
    assert shell.run("run", "no-such-study").code == 4


def test_the_same_key_gives_the_same_job(shell: Shell) -> None:
    words = ("submit", "--values", "1", "--key", "transcript")
    assert shell.run(*words).out == shell.run(*words).out


def test_the_parts_of_a_preset_are_listed_with_it(shell: Shell) -> None:
    job = json.loads(shell.run("run", "p05-three-numbers", "--tag", "parts:here", "--wait", "--json").out)
    shown = shell.run("show", job["id"]).transcript.splitlines()
    assert next(line for line in shown if line.startswith("part ")).endswith("succeeded, three_numbers ID")
    listed = [json.loads(line)["id"] for line in shell.run("jobs", "--tag", "parts:here", "--json").out.splitlines()]
    assert listed == [job["id"]]
    parts = [json.loads(line) for line in shell.run("jobs", "--part-of", job["id"], "--json").out.splitlines()]
    assert [part["kind"] for part in parts] == ["three_numbers"]
    everything = shell.run("jobs", "--tag", "parts:here", "--parts", "--json").out.splitlines()
    assert len(everything) == 2
