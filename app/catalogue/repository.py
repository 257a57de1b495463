"""SQL of the workers as the api shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from warpfold.app.metrics.devices import Reading
from warpfold.app.tables.jobs import lives, workers
from warpfold.contract.placement import RatesView

LOST = "lost"
READY = frozenset({"idle", "running"})
_DRAINING = {"running": "draining", "idle": "drained"}


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's row; `state` is "lost" once its heartbeat expired, "draining" and then "drained" where an admin wants
    it to take no more jobs. `device` is a `DeviceView` as a JSON
    object, `reading` what its gauges showed with the latest heartbeat, `rates` how fast the slot is."""

    id: str
    slot: str
    backend: str
    host: str
    pid: int
    state: str
    job_id: UUID | None
    device: Mapping[str, Any] | None
    reading: Reading | None
    rates: RatesView | None
    version: str
    started_at: datetime
    heartbeat_at: datetime


_WORKERS = select(
    workers.c.id,
    workers.c.slot,
    workers.c.backend,
    workers.c.host,
    workers.c.pid,
    workers.c.state,
    workers.c.job_id,
    workers.c.device,
    workers.c.reading,
    workers.c.rates,
    workers.c.version,
    workers.c.started_at,
    workers.c.heartbeat_at,
    workers.c.draining,
    lives().label("alive"),
).order_by(workers.c.host, workers.c.slot)


def all_workers(connection: Connection) -> Sequence[Worker]:
    """Every worker that has reported itself, live or not, by host and slot."""
    workers = []
    for row in connection.execute(_WORKERS).mappings():
        fields = dict(row)
        alive, draining = fields.pop("alive"), fields.pop("draining")
        if not alive and fields["state"] != "stopped":
            fields["state"] = LOST
        elif draining:
            fields["state"] = _DRAINING.get(fields["state"], fields["state"])
        fields["reading"] = (
            None if fields["reading"] is None or not alive else Reading.model_validate(fields["reading"])
        )
        fields["rates"] = RatesView.stored(fields["rates"])
        workers.append(Worker(**fields))
    return workers
