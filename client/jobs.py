"""Conversations about jobs."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from pydantic import BaseModel

from warpfold.client.errors import JobFailed, WaitedTooLong, WarpfoldError
from warpfold.client.exchange import Call, Parameters, Steps, pages, send
from warpfold.client.http import httpx
from warpfold.client.job_results import ReduceArrayResult, ReduceResult, Result
from warpfold.client.models import Job, JobCount
from warpfold.contract.frozen import SHOW_SECRETS

if TYPE_CHECKING:
    from warpfold.contract.jobs import JobSpec

_LONG_POLL_S = 20.0
_PAGE = 200
_ID_LENGTH = 36

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Follow = Callable[[Job], None]
"""Told each state of a job that is waited for."""


def _job(response: httpx.Response) -> Job:
    return Job.model_validate_json(response.content)


def submit(spec: "JobSpec | Mapping[str, Any]", key: str | None) -> Steps[Job]:
    """Hand in a job. If the caller has no idempotency key, the client makes one."""
    body = spec.model_dump(mode="json", context=SHOW_SECRETS) if isinstance(spec, BaseModel) else dict(spec)
    return send(Call("POST", "/v1/jobs", _job, body=body, headers={"Idempotency-Key": key or str(uuid.uuid4())}))


def get(job_id: str) -> Steps[Job]:
    return send(Call("GET", f"/v1/jobs/{job_id}", _job))


def cancel(job_id: str) -> Steps[Job]:
    return send(Call("POST", f"/v1/jobs/{job_id}/cancel", _job))


class JobEdit(TypedDict, total=False):
    """What is to be changed in a job. A field that is left out stays as it is, and None takes a name or a note away.
    `tags` are all tags of the job, in place of those that it has."""

    name: str | None
    note: str | None
    tags: Mapping[str, str]


def edit(job_id: str, changed: JobEdit) -> Steps[Job]:
    return send(Call("PATCH", f"/v1/jobs/{job_id}", _job, body=dict(changed)))


def delete(job_id: str) -> Steps[None]:
    return send(Call("DELETE", f"/v1/jobs/{job_id}", lambda _: None))


class JobFilter(TypedDict, total=False):
    """Selects jobs. A field that is left out does not restrict them. `id` is the id of a job, or at least 4 characters
    with which it begins. A job must have one of the given statuses, kinds
    and owners, and all of the tags; a tag is a name, or a name and a value as "name:value". `text` are words with which
    a word of its tags or of its name begins. `parent` is the id of a preset's job whose parts are wanted, or "none" for
    jobs that are no part of another; `batch` is the id of a batch. It was accepted at `since` or later and before
    `until`: moments, or ISO 8601.
    """

    id: str | None
    status: Status | Sequence[Status] | None
    kind: str | Sequence[str] | None
    owner: str | Sequence[str] | None
    tags: Sequence[str]
    text: str | None
    parent: str | None
    batch: str | None
    since: datetime | str | None
    until: datetime | str | None


def named(job_id: str) -> Steps[Job]:
    """The job with this id, or whose id begins so. Raises WarpfoldError where none or several do, and for a beginning
    that is too short."""
    from warpfold.contract.id_beginning import is_beginning

    if len(job_id) >= _ID_LENGTH:
        return (yield from get(job_id))
    if not is_beginning(job_id):
        raise WarpfoldError(f"{job_id!r} is neither an id nor its beginning of 4 characters or more")
    fitting = yield from find({"id": job_id}, 2)
    if len(fitting) != 1:
        how_many = "the ids of several jobs begin" if fitting else "no job has an id that begins"
        raise WarpfoldError(f"{how_many} with {job_id!r}")
    return (yield from get(fitting[0].id))


def find(chosen: JobFilter, limit: int) -> Steps[list[Job]]:
    """Up to `limit` jobs, newest first."""
    return pages("/v1/jobs", Job, _wanted(chosen), limit=limit, page=_PAGE)


def count(chosen: JobFilter) -> Steps[JobCount]:
    """How many jobs there are."""

    def read(response: httpx.Response) -> JobCount:
        return JobCount.model_validate(response.json()["count"])

    return send(Call("GET", "/v1/jobs", read, {**_wanted(chosen), "limit": 1, "count": True}))


def _wanted(chosen: JobFilter) -> Parameters:
    wanted: dict[str, Any] = {name: value for name, value in chosen.items() if name != "tags"}
    for name in ("since", "until"):
        if isinstance(wanted.get(name), datetime):
            wanted[name] = wanted[name].isoformat()
    return {**wanted, "tag": list(chosen.get("tags", ())) or None}


def wait(job: Job, timeout_s: float | None = None, follow: Follow | None = None) -> Steps[Job]:
    """The job once it has ended. The service holds each request until something changes: with `follow` anything,
    progress included, else the status. Raises WaitedTooLong after `timeout_s` seconds."""
    give_up = None if timeout_s is None else time.monotonic() + timeout_s
    tag: str | None = None
    if follow is not None:
        follow(job)
    # A job of a list lacks long results, so it is asked for by itself.
    while not job.ended or (job.succeeded and job.result is None):
        left = _LONG_POLL_S if give_up is None else min(_LONG_POLL_S, give_up - time.monotonic())
        if left <= 0 and not job.ended:
            why = f": {job.waiting.detail}" if job.waiting else ""
            raise WaitedTooLong(f"job {job.id} is still {job.status} after {timeout_s:g} s{why}")
        headers = {"Prefer": f"wait={max(1, int(left))}"}  # whole seconds
        if tag is not None and follow is not None:
            headers["If-None-Match"] = tag
        seen: tuple[Job | None, str | None] = yield Call(
            "GET", f"/v1/jobs/{job.id}", _job_and_tag, headers=headers, expected=(304,)
        )
        if seen[0] is not None:
            job, tag = seen[0], seen[1]
            if follow is not None:
                follow(job)
    return job


def _job_and_tag(response: httpx.Response) -> tuple[Job | None, str | None]:
    return (None if response.status_code == 304 else _job(response)), response.headers.get("ETag")


def result_of(job: Job) -> Result:
    """The result of a job that has ended. Raises JobFailed if the job has no result."""
    if job.result is None:
        raise JobFailed(job.id, job.status, job.reason, job.error)
    return job.result


def array_result_of(job: Job) -> ReduceArrayResult:
    """The result of a reduction along axes or by segments. Raises JobFailed, and TypeError for another result."""
    result = result_of(job)
    if not isinstance(result, ReduceArrayResult):
        raise TypeError(f"the result of job {job.id} is no array of values")
    return result


def reduction_of(job: Job) -> ReduceResult:
    """The result of a reduce job that has ended. Raises TypeError for another kind."""
    result = result_of(job)
    if not isinstance(result, ReduceResult):
        raise TypeError(f"job {job.id} is of kind {job.kind}, not a reduction")
    return result
