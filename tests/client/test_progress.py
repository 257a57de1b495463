"""The progress of a job is shown while a client waits for it."""

import sys

import pytest
from rich.console import Console

from tests.support.job import JOB
from warpfold.client.models import Job
from warpfold.client.progress import bar, state_of
from warpfold.client.sending import UploadState


def job(status: str, done: int = 0, total: int = 0, reason: str | None = None) -> Job:
    progress = {"done": done, "total": total, "unit": "elements"}
    position = 2 if status == "queued" else None
    return Job.model_validate(
        {**JOB, "status": status, "progress": progress, "queue_position": position, "reason": reason}
    )


def test_a_state_is_told_in_a_few_words() -> None:
    assert state_of(job("queued")) == "queued, number 2"
    assert state_of(job("running")) == "running"
    assert state_of(job("running", 2_000, 10_000)) == "running, 2,000 of 10,000 elements"
    assert state_of(job("failed", reason="timeout")) == "failed (timeout)"


def test_a_state_tells_when_a_job_that_waits_may_start() -> None:
    waits = {**JOB, "status": "queued", "queue_position": 2, "estimated_start_at": "2026-11-21T02:05:07+02:00"}
    assert state_of(Job.model_validate(waits)) == "queued, number 2, starts about 00:05:07 UTC"


def test_a_state_tells_why_no_slot_takes_the_job() -> None:
    waiting = {"reason": "slots_drained", "detail": "Every slot that could run it is drained."}
    waits = Job.model_validate({**JOB, "status": "queued", "queue_position": 2, "waiting": waiting})
    assert state_of(waits) == "queued, number 2, slots drained"


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for wanted in (None, False):
        with bar(wanted) as follow:
            assert follow is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console", lambda stderr: Console(file=sys.stderr, force_terminal=True, width=100))
    with bar(True) as follow:
        assert follow is not None
    assert capsys.readouterr() == ("", ""), "there was nothing to show"
    with bar(True) as follow:
        assert follow is not None
        follow(UploadState("b[1].csv", 3 << 20, 10 << 20, 2, 5))
    assert "3.0 / 10.0 MiB, file 2 of 5: b[1].csv" in capsys.readouterr().err
    with bar(True) as follow:
        assert follow is not None
        follow(job("queued"))
        follow(job("running", 2_000, 10_000))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "running, 2,000 of 10,000 elements" in printed.err
