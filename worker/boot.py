"""A worker from start to end: it serves one slot of this machine until it is asked to stop."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import psutil
import structlog
from redis import RedisError
from rq.job import Job
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.jobs import losses, workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.tracing.tracing import start_tracing
from warpfold.contract.backoff import Backoff
from warpfold.contract.needs import DASK, GANG
from warpfold.worker.child_process import BrokenSlot
from warpfold.worker.direct import DirectMessages
from warpfold.worker.endings import Place
from warpfold.worker.gpu_lock import GpuTurn, SlotTaken, gpus_of, slot_lock
from warpfold.worker.heartbeat import Heartbeat
from warpfold.worker.messages import Opener, Prepare, Spare
from warpfold.worker.nursery import Nursery, NurseryLost
from warpfold.worker.queue import Consumer, connect
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop, StopRequested
from warpfold.worker.tasks import run_job

log: FilteringBoundLogger = structlog.get_logger()


def _nothing() -> None:
    """Prepare nothing, for an opener that imports nothing."""


def serve_slot(settings: Settings, info: WorkerInfo, opener: Opener, stop: Stop, prepare: Prepare = _nothing) -> int:
    """Serve one slot; returns the exit code: 0 after a request to stop, 1 if the slot cannot be served. It is to be
    called before this process has a second thread. A spare child calls `prepare` before `opener`, and so does the
    nursery of the children, except for slots of GPUs: what is loaded for a GPU must not be forked."""
    nursery = Nursery(prepare if info.backend in ("cpu", DASK) else _nothing)
    # A spare child of a GPU opens no device: a second CUDA context takes memory, and would be open while times are
    # taken.
    spare = Spare(prepare, opens=info.backend == "cpu") if settings.spare_child else None
    open_s = settings.gang_open_s if info.slot == GANG else None
    slot = Slot(info.slot, opener, stop, nursery, silent_s=settings.lease_s, spare=spare, open_s=open_s)
    try:
        with slot_lock(settings.lock_dir(), info.slot):
            return _serve(settings, info, slot, stop)
    except SlotTaken as error:
        log.error("slot taken", error=str(error))
    except (BrokenSlot, NurseryLost) as error:
        log.error("slot broken", error=str(error))
    finally:
        nursery.close()
    return 1


def describe(slot_name: str) -> WorkerInfo:
    """This process as a worker. Its id names machine and slot, so that a restarted worker is the same one."""
    host = socket.gethostname()[:64]
    return WorkerInfo(
        id=f"{host}:{slot_name}",
        slot=slot_name,
        backend=slot_name.partition(":")[0],
        host=host,
        pid=os.getpid(),
        version=version("warpfold"),
        device=None,
    )


class CompileAhead:
    """The process that compiles ahead of need (`kernels/cpu/ahead.py`). It is paused while a job runs: a job that needs
    a kernel which is not compiled yet compiles it by itself. How the process ends makes no difference to the worker.

    Without `wanted` no process is started. Only the thread that made the object may call its methods.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, at the first call."""
        if self._wanted:
            self._wanted = False
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warpfold.kernels.cpu.ahead", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int | None:
        """The id of the process while it runs, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the process within the block."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # this does nothing if the process has ended


def _serve(settings: Settings, info: WorkerInfo, slot: Slot, stop: Stop) -> int:
    database = BlockingDatabase(settings.database_url, application=f"warpfold-{info.slot}")
    tracing = start_tracing(settings, "worker", id=info.id, slot=info.slot)
    try:
        _take_over(database, settings, info, stop)
        heartbeat = Heartbeat(database, settings, info)
        heartbeat.start()
        ahead = CompileAhead(wanted=settings.compile_ahead and info.backend == "cpu")
        try:
            turn = GpuTurn(settings.lock_dir(), gpus_of(info.slot))
            place = Place(info.id, slot, turn, database, settings, stop, heartbeat.show, heartbeat.turned, tracing)
            _work(place, heartbeat, ahead)
        finally:
            ahead.close()
            slot.close()
            heartbeat.stop()
    except StopRequested:
        pass
    finally:
        slot.close()
        database.close()
        tracing.close()
    log.info("stopped")
    return 0


def _take_over(database: BlockingDatabase, settings: Settings, info: WorkerInfo, stop: Stop) -> None:
    """Wait for Postgres, make sure that no other process is this worker, and queue again the jobs that an earlier
    process of this worker left running."""
    pause = Backoff()
    while True:
        try:
            pid = database.run(workers.live_pid, info.id)
            if pid is not None and _is_worker(pid, info.slot):
                raise SlotTaken(f"worker {info.id} already runs as process {pid}, with another data directory")
            for job_id in database.run(losses.take_back_from, info.id, settings.max_losses):
                log.warning("taken back from an earlier process of this worker", job=str(job_id))
            return
        except DATABASE_LOST as error:
            if not pause.failing:
                log.warning("waiting for Postgres", error=str(error).strip())
            if stop.wait(pause.next()):
                raise StopRequested from None


def _is_worker(pid: int, slot: str) -> bool:
    try:
        process = psutil.Process(pid)
        if pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        words = process.cmdline()
    except psutil.Error:
        return False
    return any("worker" in word for word in words) and slot in words


def _work(place: Place, heartbeat: Heartbeat, ahead: CompileAhead) -> None:
    """Take attempts and run them while Redis and Postgres answer; wait while they do not."""
    pause = Backoff()
    run = partial(run_job, place)
    device = place.slot.ready(heartbeat.turns)
    heartbeat.ready(device, place.slot.rates)
    ahead.start()
    direct = DirectMessages(place.settings.database_url, place.worker)
    redis = connect(place.settings.redis_url, answer_within_s=5.0)
    while not place.stop.requested:
        try:
            consumer = Consumer(place.worker, redis, run, place.stop, direct)
            consumer.enter()
            if pause.failing:
                log.info("back at work")
            pause.reset()
            try:
                _consume(place, heartbeat, consumer, ahead)
            finally:
                direct.close()
                consumer.close()
                if place.stop.requested:
                    consumer.leave()
        except (RedisError, *DATABASE_LOST) as error:
            if not pause.failing:
                log.warning("waiting for Redis or Postgres", error=str(error).strip())
            heartbeat.turned()
            place.stop.wait(pause.next())


def _consume(place: Place, heartbeat: Heartbeat, consumer: Consumer, ahead: CompileAhead) -> None:
    while not place.stop.requested:
        heartbeat.turned()
        place.slot.close_devices()
        device = place.slot.ready(heartbeat.turns)
        place.slot.hear()
        heartbeat.ready(device, place.slot.rates)
        taken = consumer.take()
        if taken is not None:
            if isinstance(taken, Job):  # a group, which a job handed over directly becomes, looks by itself
                # The child may have died during the wait.
                heartbeat.ready(place.slot.ready(heartbeat.turns), place.slot.rates)
            with ahead.paused():
                consumer.execute(taken)
        # A spare child starts only now, so that the job after the loss of a child has the processor to itself.
        place.slot.keep_spare()
