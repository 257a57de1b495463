"""A session about jobs, whole outputs compared."""

import json
import re
import signal
from typing import Any

import pytest

from tests.support.shell import Shell, plain
from warpfold.client.api import Client
from warpfold.client.cli.jobs import in_words, show_job
from warpfold.client.models import Job
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult

LONG = ("submit", "--generate", "normal", "--n", "68719476736")

ENDED = {
    **{"id": "5f0c", "kind": "reduce", "status": "succeeded", "owner": "ada", "attempt": 1, "queue_position": None},
    **{"created_at": "2026-11-21T00:00:00Z", "started_at": None, "finished_at": None, "result": None},
    **{"reason": None, "error": None, "progress": {"done": 0, "total": 0, "unit": ""}},
}

SHOWN = """\
id  ID
kind  reduce
about  sum of 3 values
status  succeeded
value  1.0
hex  0x1.0000000000000p+0
computed by  exact on DEVICE, correctly rounded
kernel  MS
owner  ada
tags  course:p05
submitted  TIME
finished  TIME
worker  WORKER
"""


@pytest.mark.parametrize(
    ("source", "about"),
    [
        ({"type": "dataset", "id": "41457a0c" * 8, "name": "sales.csv"}, "sales.csv"),
        ({"type": "dataset", "id": "41457a0c" * 8}, "dataset 41457a0c"),
        (
            {"type": "files", "paths": ["a.npy"], "uploads": [{"id": "41457a0c" * 8, "name": "b.npy"}]},
            "a.npy and 1 more",
        ),
        ({"type": "files", "glob": "run-*.npy"}, "run-*.npy"),
        ({"type": "values", "values": [1, 2]}, "2 values"),
    ],
)
def test_a_job_is_about_files_as_their_sender_calls_them(source: dict[str, Any], about: str) -> None:
    job = Job.model_validate({**ENDED, "spec": {"kind": "reduce", "op": "sum", "source": source}})
    assert in_words(job) == f"sum of {about}"


def test_submitting_and_waiting_shows_the_result(shell: Shell, client: Client) -> None:
    words = ("submit", "--values", "1e8, 1, -1e8", "--dtype", "float32", "--tag", "course:p05", "--wait")
    done = shell.run(*words)
    [worker], [device] = client.workers(), client.devices()
    shown = done.transcript.replace(device.device["name"], "DEVICE").replace(worker.id, "WORKER")
    # Whether these kernels ran before on this service is not said here.
    assert re.sub(r"^prepare  MS\n", "", shown, flags=re.MULTILINE) == SHOWN


def test_the_id_is_all_that_a_script_gets(shell: Shell) -> None:
    done = shell.run("submit", "--generate", "uniform", "--n", "1000", "--seed", "7")
    assert done.transcript == "ID\n"
    job_id = done.out.strip()
    assert shell.run("wait", job_id).transcript == ""
    watched = shell.run("watch", job_id[:13])
    assert watched.code == 0
    assert f"id           {job_id}" in watched.out
    shown = json.loads(shell.run("show", job_id, "--json").out)
    assert (shown["id"], shown["spec"]["source"]["seed"]) == (job_id, 7)


def test_a_list_has_a_line_for_each_job(shell: Shell) -> None:
    tag = ("--tag", "list:here")
    for value in ("1", "2.5"):
        assert shell.run("submit", "--values", value, "--dtype", "float64", *tag, "--wait").code == 0
    listed = shell.run("jobs", *tag, "--mine")
    lines = [line.split() for line in listed.transcript.splitlines()]
    assert lines[0] == ["id", "kind", "status", "owner", "submitted", "of", "value"]
    assert [line[1:] for line in lines[1:]] == [
        ["reduce", "succeeded", "ada", "TIME", "sum", "of", "1", "value", "2.5"],
        ["reduce", "succeeded", "ada", "TIME", "sum", "of", "1", "value", "1.0"],
    ]
    as_json = shell.run("jobs", *tag, "--json", "--limit", "1").out.splitlines()
    assert [json.loads(line)["result"]["value"] for line in as_json] == [2.5]
    assert shell.run("jobs", "--status", "asleep").code == 2
    assert shell.run("jobs", "--since", "lately").code == 2


def test_jobs_are_searched_and_counted(shell: Shell) -> None:
    for value in ("1", "2"):
        words = ("submit", "--values", value, "--dtype", "float64", "--tag", "search:Grand-Total", "--wait")
        assert shell.run(*words).code == 0
    chosen = ("--status", "failed", "--status", "succeeded", "--owner", "ada", "--owner", "bob", "--text", "total")
    listed = shell.run("jobs", *chosen, "--kind", "reduce", "--kind", "benchmark", "--since", "1h", "--json").out
    assert [json.loads(line)["result"]["value"] for line in listed.splitlines()] == [2.0, 1.0]
    assert shell.run("jobs", *chosen, "--until", "1h").out.splitlines()[1:] == []
    assert shell.run("jobs", *chosen, "--count").out == "2\n"
    assert json.loads(shell.run("jobs", *chosen, "--count", "--json").out) == {"number": 2, "exact": True}


def test_a_job_is_given_up_waited_for_and_cancelled(shell: Shell) -> None:
    job_id = shell.run(*LONG).out.strip()
    given_up = shell.run("wait", job_id, "--timeout", "0.5")
    assert given_up.code == 5
    assert "is still" in given_up.err
    assert shell.run("cancel", job_id).code == 0
    ended = shell.run("wait", job_id)
    assert ended.transcript == "warpfold: job ID cancelled\n[exit code 1]\n"
    assert shell.run("cancel", job_id).code == 0
    followed = [json.loads(line) for line in shell.run("watch", job_id, "--json").out.splitlines()]
    assert followed[-1]["status"] == "cancelled"


def test_jobs_are_named_tagged_and_deleted_by_what_they_have_in_common(shell: Shell) -> None:
    ids = [json.loads(shell.run("submit", "--values", "1 2", "--wait", "--json").out)["id"] for _ in range(2)]
    edited = shell.run("edit", ids[0], "--name", "first sweep", "--note", "seen", "--tag", "study:x", "--tag", "run:7")
    assert (edited.code, "name  first sweep" in edited.transcript) == (0, True), edited.transcript
    shell.run("edit", ids[1], "--tag", "study:x")
    shown = shell.run("edit", ids[0], "--untag", "run", "--note", "").transcript
    assert "tags  study:x\n" in shown
    assert "note" not in shown
    assert shell.run("edit", ids[0]).code == 2
    assert shell.run("jobs", "--text", "sweep", "--count").out.strip() == "1"
    followed = shell.run("watch", *ids, "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in followed] == ids
    assert shell.run("cancel", "--tag", "study:x").transcript == "no job of yours fits\n"
    assert shell.run("cancel", ids[0], "--tag", "study:x").code == 2
    assert shell.run("delete").code == 2
    assert shell.run("delete", "--tag", "study:x").code == 1, "nobody answered the question"
    gone = shell.run("delete", "--tag", "study:x", "--yes", "--json").out.splitlines()
    assert {json.loads(line)["id"] for line in gone} == {*ids}
    assert shell.run("show", ids[0]).code == 4


def test_a_finished_job_cannot_be_cancelled(shell: Shell) -> None:
    job_id = shell.run("submit", "--values", "1", "--wait", "--json")
    job = json.loads(job_id.out)["id"]
    done = shell.run("cancel", job)
    assert done.transcript == "warpfold: job ID is not cancelled: The job has already succeeded.\n[exit code 4]\n"


def test_several_jobs_are_waited_for_within_one_time_and_each_failure_is_told(shell: Shell) -> None:
    blocker = shell.run(*LONG).out.strip()
    others = [shell.run("submit", "--values", "1 nan", "--set", "nan_policy=raise").out.strip() for _ in range(2)]
    given_up = shell.run("wait", blocker, *others, "--timeout", "1")
    assert (given_up.code, given_up.out) == (5, "")
    assert given_up.err == f"warpfold: job {blocker} is still not done after 1 s\n"
    assert shell.run("cancel", blocker, "zz").code == 4
    assert json.loads(shell.run("show", blocker, "--json").out)["status"] in ("queued", "running"), "zz is no job"
    assert shell.run("cancel", blocker).code == 0
    ended = shell.run("wait", blocker, *others)
    assert ended.code == 1
    assert [line.split()[:3] for line in ended.err.removeprefix("warpfold: ").splitlines()] == [
        ["job", blocker, "cancelled"],
        *(["job", other, "failed"] for other in others),
    ]


def test_an_id_that_is_none_is_said(shell: Shell) -> None:
    assert shell.run("show", "zz").transcript == (
        "warpfold: none of the latest 1000 jobs begins with 'zz'\n[exit code 4]\n"
    )
    assert shell.run("show", "00000000").transcript == ("warpfold: no job begins with '00000000'\n[exit code 4]\n")
    unknown = shell.run("show", "00000000-0000-4000-8000-000000000000")
    assert unknown.code == 4
    assert "There is no job with this id" in unknown.err


def test_a_failed_job_is_a_code_of_its_own(shell: Shell) -> None:
    done = shell.run("submit", "--values", "1 nan", "--set", "nan_policy=raise", "--wait")
    assert done.code == 1
    assert "failed (invalid_input)" in done.err


def test_a_job_of_any_kind_is_described_in_the_list(shell: Shell) -> None:
    (shell.folder / "sales.csv").write_text("region,price\nEU,1\n")
    assert shell.run("reduce", "sales.csv", "--by", "region", "--column", "price").code == 0
    (row,) = shell.run("jobs", "--limit", "1").out.splitlines()[1:]
    assert re.search(r"sum of price by region · sales.csv +1 group$", row), row


def test_a_group_by_is_shown_with_its_groups(shell: Shell) -> None:
    (shell.folder / "sales.csv").write_text("region,price\nsouth,9007199254740993\nnorth,2\n,3\n")
    assert shell.run("reduce", "sales.csv", "--by", "region", "--column", "price").code == 0
    job = json.loads(shell.run("jobs", "--limit", "1", "--json").out)["id"]
    shown = shell.run("show", job)
    assert [line.split() for line in shown.out.splitlines()[-3:]] == [
        ["region", "price_sum"], ["north", "2"], ["south", "9007199254740993"]
    ]  # fmt: skip
    assert shown.err == ""


@pytest.mark.parametrize(("length", "hint"), [(2, ""), (21, "these are the first 20 of 21; ")])
def test_an_array_is_shown_with_its_first_values(capsys: pytest.CaptureFixture[str], length: int, hint: str) -> None:
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    values = [None, *(float(number) for number in range(1, length))]
    result = {**example, "shape": [length], "values": values, "hex": [None] * length, "counts": [1] * length}
    show_job(Job.model_validate({**ENDED, "spec": {}, "result": result}), as_json=False)
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    at = rows.index(["axis_0", "value"])
    assert rows[at + 1 : at + 3] == [["0"], ["1", "1.0"]]
    assert len(rows) - at - 1 == min(length, 20)
    assert printed.err.startswith(hint)


def test_results_that_are_too_long_to_show_name_the_command_that_shows_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kind, words in (("benchmark", "`warpfold results --job 5f0c`"), ("preset", "`warpfold report 5f0c`")):
        show_job(Job.model_validate({**ENDED, "kind": kind, "spec": {}}), as_json=False)
        assert words in capsys.readouterr().err
    show_job(Job.model_validate({**ENDED, "kind": "benchmark", "status": "running", "spec": {}}), as_json=False)
    assert capsys.readouterr().err == ""


def test_a_quota_that_a_job_waits_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job.model_validate(
        {
            **{**ENDED, "status": "queued", "queue_position": 3},
            **{"estimated_start_at": "2026-11-21T00:05:00Z"},
            **{"hold": {"quota": "gpu_seconds_per_day", "limit": 600, "until": "2026-11-22T00:00:00Z"}},
        }
    )
    show_job(job, as_json=False)
    shown = plain(capsys.readouterr().out)
    assert "status  queued, number 3, starts about 00:05:00 UTC\n" in shown
    assert "waits for  the owner's quota (gpu_seconds_per_day, 600), until DAY 00:00\n" in shown
    assert "starts about  TIME\n" in shown


def test_why_a_job_ran_where_it_did_is_said_beside_the_predicted_times(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "gpu1:cpu was predicted to end it first, in 0.172 s."
    predicted = {"gpu1:cuda:0": 0.227, "gpu1:cpu": 0.172}
    placement = {"backend": "cpu", "slot": "gpu1:cpu", "reason": reason, "bytes": 8 << 30, "predicted": predicted}
    result = {**ReduceResult.model_json_schema()["examples"][0], "placement": placement}
    result["timings"] = {**result["timings"], "total_ms": 181.4}
    show_job(Job.model_validate({**ENDED, "result": result}), as_json=False)
    shown = capsys.readouterr().out
    assert reason in shown
    assert "gpu1:cpu 0.172 s, gpu1:cuda:0 0.227 s for 8,589,934,592 bytes; it took 0.181 s" in shown


def test_ctrl_c_stops_waiting_and_not_the_job(shell: Shell, client: Client) -> None:
    job_id = shell.run(*LONG).out.strip()
    try:
        watching = shell.start("watch", job_id, "--json")
        assert watching.stdout is not None
        first = watching.stdout.readline()
        assert first, watching.communicate()
        assert json.loads(first)["id"] == job_id
        watching.send_signal(signal.SIGINT)
        printed = watching.communicate(timeout=120)[1]
        assert printed == f"warpfold: the job goes on; `warpfold cancel {job_id}` ends it\n"
        assert watching.returncode == 130
        assert not client.job(job_id).ended
    finally:
        shell.run("cancel", job_id)  # the tests after this need the slot
