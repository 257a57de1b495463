"""HTTP of the catalogues, and of workers and devices."""

from functools import cache

from fastapi import APIRouter
from pydantic import ValidationError

from warpfold.app.catalogue import repository
from warpfold.app.catalogue.repository import READY, Worker
from warpfold.app.catalogue.views import Catalogue, DeviceInUse, Devices, Strategies, StrategyView, Workers, WorkerView
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.openapi import answers
from warpfold.contract.provenance import DeviceView
from warpfold.kernels.catalog import strategies

router = APIRouter(prefix="/v1", tags=["catalogue"])


@cache
def _catalogue() -> Catalogue:
    return Catalogue.whole()


@cache
def _strategies() -> Strategies:
    return Strategies(items=[StrategyView.of(row) for row in strategies()])


@router.get("/ops", summary="List ops, dtypes and distributions", responses=answers())
async def show_ops(user: User) -> Catalogue:
    """List everything that a spec may name: ops with their result dtypes, dtypes, and distributions with their
    parameters."""
    return _catalogue()


@router.get("/strategies", summary="List strategies", responses=answers())
async def show_strategies(user: User) -> Strategies:
    """List all strategies, with what each computes and how large its error may be."""
    return _strategies()


@router.get("/workers", summary="List workers", responses=answers())
async def show_workers(user: User, context: Using) -> Workers:
    """List all workers with their states and jobs."""
    workers = await context.database.read(repository.all_workers)
    return Workers(items=[_worker(worker) for worker in workers])


@router.get("/devices", summary="List devices", responses=answers())
async def show_devices(user: User, context: Using) -> Devices:
    """List all devices that workers have opened. The CPU of a host is one device, however many workers use it."""
    workers = await context.database.read(repository.all_workers)
    groups: dict[tuple[str, str, int, str | None], list[tuple[Worker, DeviceView]]] = {}
    for worker in workers:
        device = _device(worker)
        if device is not None:
            key = (worker.host, device.backend, device.index, device.uuid)
            groups.setdefault(key, []).append((worker, device))
    return Devices(
        items=[
            DeviceInUse(
                host=group[0][0].host,
                device=group[-1][1],
                workers=[worker.id for worker, _ in group],
                live=any(worker.state in READY for worker, _ in group),
                rates=next((worker.rates for worker, _ in group if worker.rates is not None), None),
            )
            for group in groups.values()
        ]
    )


def _worker(worker: Worker) -> WorkerView:
    device = _device(worker)
    return WorkerView(
        id=worker.id,
        slot=worker.slot,
        backend=worker.backend,
        host=worker.host,
        pid=worker.pid,
        state=worker.state,
        job_id=worker.job_id,
        device=None if device is None else device.name,
        reading=worker.reading,
        rates=worker.rates,
        version=worker.version,
        started_at=worker.started_at,
        heartbeat_at=worker.heartbeat_at,
    )


def _device(worker: Worker) -> DeviceView | None:
    try:
        return None if worker.device is None else DeviceView.model_validate(worker.device)
    except ValidationError:
        return None  # reported by a worker of another version
