import json
from pathlib import Path

import httpx
import numpy as np

from tests.support.service import Service
from tests.support.shell import Shell


def spec(*values: float, **more: object) -> str:
    return json.dumps({"source": {"type": "values", "values": values, "dtype": "float64"}, **more})


def test_a_file_of_specs_is_one_batch(shell: Shell) -> None:
    lines = [spec(1e16, 1, -1e16), "", spec(5, 7, op="max")]
    (shell.folder / "specs.jsonl").write_text("\n".join(lines))
    batch = shell.run("submit", "specs.jsonl").out.strip()
    waited = shell.run("batches", "wait", batch)
    assert waited.code == 0
    assert "succeeded, 2 of 2 jobs" in waited.out
    assert "specs.jsonl" in waited.out
    rows = [line.split() for line in shell.run("batches", "results", batch[:13]).out.splitlines()[1:]]
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("0", "reduce", "succeeded", "1.0"),
        ("1", "reduce", "succeeded", "7.0"),
    ]
    assert batch[:8] in shell.run("batches", "list").out
    assert json.loads(shell.run("batches", "show", batch, "--json").out)["progress"]["succeeded"] == 2
    assert shell.run("batches", "results", batch, "--parquet", "out.parquet").code == 0
    assert (shell.folder / "out.parquet").read_bytes()[:4] == b"PAR1"
    assert shell.run("batches", "cancel", batch).code == 4
    assert shell.run("batches", "show", "ffffffff").code == 4


def test_the_beginning_of_an_id_names_a_batch_of_any_user_and_says_why_it_does_not(
    shell: Shell, service: Service
) -> None:
    (shell.folder / "specs.jsonl").write_text(f"{spec(1)}\n")
    batch = shell.run("submit", "specs.jsonl").out.strip()
    assert json.loads(shell.run("batches", "show", batch[:8].upper(), "--json").out)["id"] == batch
    assert shell.run("batches", "show", "00000000").transcript == (
        "warpfold: no batch begins with '00000000'\n[exit code 4]\n"
    )
    assert shell.run("batches", "show", "zz").transcript == (
        "warpfold: none of your latest 1,000 batches begins with 'zz'\n[exit code 4]\n"
    )


def test_options_hold_for_every_line_and_a_wait_prints_every_value(shell: Shell) -> None:
    (shell.folder / "specs.jsonl").write_text(f"{spec(1, 2)}\n{spec()}\n{spec(3, 9)}\n")
    waited = shell.run("submit", "specs.jsonl", "--op", "max", "--tag", "a:b", "--wait", "--json")
    outcomes = [json.loads(line) for line in waited.out.splitlines()]
    assert [outcome["value"] for outcome in outcomes] == [2.0, None, 9.0]
    assert "max of no elements" in outcomes[1]["error"]
    assert waited.code == 1
    assert "1 failed" in waited.err


def test_a_webhook_is_that_of_the_batch(shell: Shell, service: Service) -> None:
    (shell.folder / "specs.jsonl").write_text(f"{spec(1)}\n{spec(2)}\n")
    words = ("submit", "specs.jsonl", "--webhook", "https://hooks.example.org/warpfold")
    refused = shell.run(*words)
    assert refused.code == 4
    assert "webhook.secret: give a secret" in refused.err
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token}"}) as http:
        assert http.post("/v1/webhooks/secret").is_success
        batch = shell.run(*words).out.strip()
        url = http.get(f"/v1/batches/{batch}/deliveries").json()["url"]
        ids = http.get("/v1/jobs", params={"batch": batch}).json()["items"]
        of_jobs = {http.get(f"/v1/jobs/{job['id']}/deliveries").status_code for job in ids}
    assert url == "https://hooks.example.org/warpfold"
    assert of_jobs == {404}


def test_what_is_wrong_names_its_line(shell: Shell) -> None:
    file = shell.folder / "specs.jsonl"
    for line, code, message in (
        ("{", 2, "specs.jsonl, line 3, is not JSON"),
        ("[1]", 2, "specs.jsonl, line 3, holds no spec"),
        ('{"kind": "reduce", "kind": "accuracy"}', 2, "specs.jsonl, line 3, kind is written twice"),
        (spec(1, op="total"), 4, "refused: specs.jsonl:3: op: unknown op"),
    ):
        file.write_text(f"{spec(1)}\n\n{line}\n")
        refused = shell.run("submit", "specs.jsonl")
        assert refused.code == code
        assert message in " ".join(refused.err.replace("│", " ").split()) or message in refused.err
    file.write_text("\n")
    assert shell.run("submit", "specs.jsonl").code == 2


def test_a_pattern_of_files_is_reduced_file_by_file(shell: Shell) -> None:
    for name, values in (("b", [1e16, 1.0, -1e16]), ("a", [2.0, 3.0]), ("c", [])):
        np.save(shell.folder / f"run-{name}.npy", np.array(values))
    for where, why in ((), "job"), (("--local",), "max of no elements"):
        summed = shell.run("reduce", "run-*.npy", *where)
        assert summed.out == "5.0\trun-a.npy\n1.0\trun-b.npy\n0.0\trun-c.npy\n"
        largest = shell.run("reduce", "run-c.npy", "run-a.npy", "--op", "max", "--json", *where)
        assert json.loads(largest.out)["file"] == "run-a.npy"
        assert json.loads(largest.out)["value"] == 3.0
        assert f"run-c.npy: {why}" in largest.err
        assert "1 of 2 files have no value" in largest.err
        assert largest.code == 1
        assert shell.run("reduce", "none-*.npy", *where).code == 2


def test_tables_are_reduced_here_each_by_itself(tmp_path: Path) -> None:
    for name, text in (("a", "x,y\n9007199254740993,1\n,2\n"), ("b", "y\n2\n"), ("c", "x\n2\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    done = Shell(tmp_path).run("reduce", "*.csv", "--column", "x", "--local")
    assert (done.code, done.out) == (1, "9007199254740993\ta.csv\n2\tc.csv\n")
    assert done.err.startswith("b.csv: holds no column 'x'")
    refused = Shell(tmp_path).run("reduce", "*.csv", "--column", "x", "--local", "--axis", "0")
    assert (refused.code, "take a single file" in " ".join(refused.err.split())) == (2, True)
