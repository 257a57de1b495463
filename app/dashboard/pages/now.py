"""The page Now: it shows what every slot runs, the gauges of its device, and whose jobs wait."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.batches import folding
from warpfold.app.batches.repository import Batch
from warpfold.app.catalogue import repository as catalogue
from warpfold.app.catalogue.repository import Worker
from warpfold.app.dashboard.rendering import Rendered, etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import JobRow, row_of, stamp_of
from warpfold.app.dashboard.shared import Shared, Sharing
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.headers import matches
from warpfold.app.jobs.estimates import OwnersTurn
from warpfold.app.jobs.listing import Filter
from warpfold.app.jobs.listing import page as page_of_jobs
from warpfold.app.jobs.placing import owners_turns, placed
from warpfold.app.jobs.store import Job
from warpfold.app.metrics.monitoring import Share, shares
from warpfold.contract.states import Status

_MOST_RUNNING = 100
_LATEST = 8
_GONE = frozenset({"stopped"})


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot with its device and the job that it runs, if the visitor sees that job."""

    worker: Worker
    state: str
    device: str | None
    job: JobRow | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The service at a moment."""

    workers: tuple[Worker, ...]
    running: tuple[Job, ...]
    latest: tuple[Job | Batch, ...]
    owners: tuple[Share, ...]
    turns: Mapping[str, OwnersTurn]


router = pages()


@router.get("/")
async def show(request: Request, visitor: Visitor, context: Using, shared: Sharing) -> Response:
    """Show the page."""
    return page(request, "now", user=visitor, **_model(await _seen(context, shared, visitor, anew=True), visitor))


@router.get("/live/now")
async def live(
    request: Request,
    visitor: Visitor,
    context: Using,
    shared: Sharing,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Show the changing part of the page, for polls."""
    seen = await _seen(context, shared, visitor)
    tag = _etag(seen, visitor)
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)

    async def rendered() -> Rendered:
        return part("now_live", **_model(seen, visitor))

    return (await shared.polls.get(("now part", tag), rendered)).response(request)


async def _seen(context: Context, shared: Shared, visitor: Principal, *, anew: bool = False) -> Snapshot:
    """What there was for the visitor to see within the last second, or with `anew` what there is now."""
    viewer = context.viewer(visitor)
    active = Filter(statuses=(Status.RUNNING,), viewer=viewer)

    async def read() -> Snapshot:
        database = context.database
        latest = await database.search(folding.page, Filter(parent=False, viewer=viewer), _LATEST)
        return Snapshot(
            workers=tuple(await database.read(catalogue.all_workers)),
            running=tuple((await database.search(page_of_jobs, active, _MOST_RUNNING)).jobs),
            latest=tuple(await placed(context, latest.rows)),
            owners=tuple(await database.read(shares)),
            turns=await owners_turns(context),
        )

    answer = shared.polls.renewed if anew else shared.polls.get
    return await answer(("now", viewer), read)


def _etag(seen: Snapshot, visitor: Principal) -> str:
    workers = [(worker.id, worker.state, worker.job_id, worker.device, worker.reading) for worker in seen.workers]
    jobs = [stamp_of(row) for row in (*seen.running, *seen.latest)]
    return etag(visitor, workers, jobs, seen.owners)


def _model(seen: Snapshot, visitor: Principal) -> dict[str, Any]:
    running: dict[UUID, Job] = {job.id: job for job in seen.running}
    by_worker = {job.worker: job for job in seen.running}
    slots = []
    for worker in seen.workers:
        if worker.state in _GONE:
            continue
        # The job's row is newer than the latest report of its worker.
        job = by_worker.get(worker.id) or running.get(worker.job_id or UUID(int=0))
        state = "running" if job is not None and worker.state == "idle" else worker.state
        slots.append(Slot(worker, state, _device(worker), None if job is None else JobRow.of(job, visitor)))
    return {
        "slots": slots,
        "owners": seen.owners,
        "turns": seen.turns,
        "queued": sum(share.queued for share in seen.owners),
        "running": sum(share.running for share in seen.owners),
        "ready": sum(slot.state in catalogue.READY for slot in slots),
        "latest": [row_of(row, visitor) for row in seen.latest],
        "etag": _etag(seen, visitor),
    }


def _device(worker: Worker) -> str | None:
    name = None if worker.device is None else worker.device.get("name")
    return name if name is None or isinstance(name, str) else json.dumps(name)
