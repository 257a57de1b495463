"""The Python client: submit jobs, wait for them, read results."""

import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import httpx
from pydantic import ValidationError

from app.jobs.spec import JobSpec
from client.errors import FieldError, JobFailed, Refused, Unreachable
from client.models import Job, ReduceResult, Result

_RETRY_STATUS = frozenset({429, 502, 503, 504})
_LONG_POLL_S = 20


class Client:
    """A connection to one Warpfold service.

    `url` is its address ("http://127.0.0.1:8080"), `token` the bearer token ("wf_…"). Requests that fail because the
    service is restarting or busy are repeated for `patience_s` seconds; a submission carries an idempotency key, so
    that repeating it never makes a second job.
    """

    def __init__(self, url: str, token: str, *, patience_s: float = 30.0) -> None:
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(10.0, read=60.0)
        )
        self._patience_s = patience_s

    def submit(self, spec: JobSpec) -> Job:
        """Hand in a job; Refused tells which field is wrong."""
        return self.submit_json(spec.model_dump(mode="json"))

    def submit_json(self, spec: object) -> Job:
        """Hand in a job written as JSON values; the service checks it."""
        key = str(uuid.uuid4())
        return Job.model_validate(self._request("POST", "/v1/jobs", json=spec, headers={"Idempotency-Key": key}).json())

    def job(self, job_id: str) -> Job:
        """A job as it is now."""
        return Job.model_validate(self._request("GET", f"/v1/jobs/{job_id}").json())

    def cancel(self, job_id: str) -> None:
        """Ask for a job's end; a job that has ended already is Refused with 409."""
        self._request("POST", f"/v1/jobs/{job_id}/cancel")

    def wait(self, job: Job, *, progress: Callable[[Job], None] | None = None) -> Job:
        """Return the job once it has ended, calling `progress` with each state seen on the way."""
        while not job.ended:
            if progress is not None:
                progress(job)
                job = self.job(job.id)
                time.sleep(0 if job.ended else 0.1)
            else:
                headers = {"Prefer": f"wait={_LONG_POLL_S}"}
                job = Job.model_validate(self._request("GET", f"/v1/jobs/{job.id}", headers=headers).json())
        if progress is not None:
            progress(job)
        return job

    def result(self, job: Job) -> Result:
        """The result of a job, waiting for it; JobFailed if there is none."""
        ended = self.wait(job)
        if ended.result is None:
            raise JobFailed(ended.id, ended.status, ended.reason, ended.error)
        return ended.result

    def reduction(self, job: Job) -> ReduceResult:
        """The result of a reduce job, waiting for it; JobFailed if there is none, TypeError for another kind."""
        result = self.result(job)
        if not isinstance(result, ReduceResult):
            raise TypeError(f"job {job.id} is of kind {job.kind}, not a reduction")
        return result

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        give_up = time.monotonic() + self._patience_s
        pause = 0.1
        while True:
            try:
                response = self._http.request(method, path, **options)
            except httpx.TransportError as error:
                if time.monotonic() + pause > give_up:
                    raise Unreachable(f"no answer from {self._http.base_url}: {error}") from error
                asked = 0.0
            else:
                asked = _retry_after(response)
                if response.status_code not in _RETRY_STATUS or time.monotonic() + max(pause, asked) > give_up:
                    return _checked(response)
            time.sleep(max(pause, asked))
            pause = min(2 * pause, 2.0)


def _retry_after(response: httpx.Response) -> float:
    try:
        return float(response.headers.get("Retry-After", 0))
    except ValueError:  # an HTTP date: our own back-off will do
        return 0.0


def _checked(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    try:
        problem = response.json()
        errors = [FieldError(str(one["field"]), str(one["message"])) for one in problem.get("errors", ())]
        raise Refused(response.status_code, str(problem["title"]), str(problem.get("detail", "")), errors)
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
        raise Refused(response.status_code, response.reason_phrase, response.text[:200]) from None
