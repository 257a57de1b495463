"""Jobs by the client, at a whole service: submitted, waited for, cancelled, listed, refused."""

import pytest

from warpfold.client import (
    BenchmarkResult,
    Client,
    JobFailed,
    Refused,
    WaitedTooLong,
    WarpfoldError,
)
from warpfold.contract.kinds.reduce import ReduceSpec

LONG = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1 << 36}}


QUICK = {"kind": "benchmark", "strategies": ["numpy"], "sizes": [1000], "backend": "cpu", "time_limit_s": 0.05}


def test_a_spec_of_ours_is_handed_in_as_it_is(client: Client) -> None:
    spec = ReduceSpec.model_validate({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}})
    job = client.submit(spec)
    assert job.wait().result is not None
    kept = client.job(job.id).spec
    assert kept == {name: value for name, value in spec.model_dump(mode="json").items() if name in kept}
    assert kept["source"]["values"] == [1, 2]


def test_a_job_brings_itself_up_to_date(client: Client) -> None:
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}})
    assert not job.ended
    assert job.wait() is job
    assert job.succeeded
    assert job == client.job(job.id)
    assert job == job.refresh()
    assert job.model_dump() == client.job(job.id).model_dump()


def test_a_job_is_named_by_the_beginning_of_its_id(client: Client) -> None:
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}})
    assert client.job(job.id[:13]).id == job.id
    for wrong, message in (("ffffffff", "no job has an id that begins"), ("abc", "neither an id nor its beginning")):
        with pytest.raises(WarpfoldError, match=message):
            client.job(wrong)
    result = client.result(job)
    assert str(result) == repr(result)
    assert str(job) == repr(job)


def test_the_same_key_gives_the_same_job(client: Client) -> None:
    spec = {"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}
    assert client.submit(spec, key="once").id == client.submit(spec, key="once").id


def test_waiting_can_be_given_up_and_the_job_cancelled(client: Client) -> None:
    job = client.submit(LONG)
    with pytest.raises(WaitedTooLong, match=job.id):
        job.wait(timeout_s=0.5)
    states: list[str] = []
    job.cancel()
    ended = client.wait(job, progress=lambda seen: states.append(seen.status))
    assert ended.status == states[-1] == "cancelled"
    with pytest.raises(JobFailed, match="cancelled"):
        client.result(job)


def test_progress_is_told_as_it_comes(client: Client) -> None:
    done: list[int] = []
    job = client.submit({**LONG, "source": {**LONG["source"], "n": 1 << 29}})  # type: ignore[dict-item]
    client.wait(job, progress=lambda seen: done.append(seen.progress.done))
    assert done == sorted(done)
    assert len(set(done)) > 1


def test_a_refusal_names_every_field(client: Client) -> None:
    with pytest.raises(Refused) as refusal:
        client.submit({"kind": "reduce", "op": "sun", "source": {"type": "values", "values": ["x"]}})
    assert refusal.value.status == 422
    assert {error.field for error in refusal.value.errors} == {"op", "source.values.0"}


def test_jobs_are_found_by_tag_page_after_page(client: Client) -> None:
    spec = {"kind": "reduce", "source": {"type": "values", "values": [1]}, "tags": {"batch": "seven"}}
    ids = [client.submit(spec).id for _ in range(7)]
    assert [job.id for job in client.jobs(tags=["batch:seven"], limit=5)] == ids[:1:-1]
    assert [job.id for job in client.jobs(tags=["batch:seven"], kind="reduce", owner="ada")] == ids[::-1]


def test_a_study_of_a_list_brings_its_result_when_asked(client: Client) -> None:
    client.submit({**QUICK, "tags": {"listed": ""}}).wait()
    [listed] = client.jobs(tags=["listed"])
    assert listed.result is None
    assert isinstance(listed.get(), BenchmarkResult)
