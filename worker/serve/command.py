"""The command `warpfold serve`."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from filelock import FileLock, Timeout
from sqlalchemy.exc import OperationalError

from warpfold.app import logs
from warpfold.app.config import Settings, load_settings
from warpfold.app.db import first_line
from warpfold.app.server.descriptors import raise_limit
from warpfold.contract.needs import DASK, GANG
from warpfold.worker.embedded.server import ServerMissing
from warpfold.worker.forks import Order
from warpfold.worker.gpu_lock import gpu_count
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.bootstrap import (
    LOCK_FILE,
    URL_FILE,
    prepare_data_dir,
    prepare_database,
    start_servers,
    write_secret,
)
from warpfold.worker.serve.hangs import HangDetector, Reports
from warpfold.worker.serve.supervisor import (
    NotReady,
    keep_alive,
    service_processes,
    shut_down,
    wait_until_ready,
    why_not_listen,
)
from warpfold.worker.start import import_service
from warpfold.worker.stop import Stop

_SLOT = re.compile(rf"cpu|{GANG}|{DASK}|cuda:\d+")

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8080,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where embedded servers, caches and logs live.", show_default="WARPFOLD_DATA_DIR or .warpfold"
        ),
    ] = None,
    slots: Annotated[
        str | None,
        typer.Option(
            help="Such as cpu or cuda:0,cuda:1,gang,cpu,dask.", show_default="every GPU seen, gang if several, and cpu"
        ),
    ] = None,
) -> None:
    """Start Postgres and Redis (embedded unless WARPFOLD_DATABASE_URL / WARPFOLD_REDIS_URL name others), bring the
    schema up to date, start the api, the dispatcher and one worker per slot, and keep them alive until Ctrl-C."""
    settings = load_settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    try:
        chosen = None if slots is None else parse_slots(slots)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--slots") from None
    obstacle = why_not_listen(host, port)
    if obstacle is not None:
        _fail(f"{host}:{port} {obstacle}; choose another with --host and --port")
    try:
        root = prepare_data_dir(settings)
    except OSError as error:
        _fail(f"{error.filename} cannot be made: {error.strerror}; choose another --data-dir")
    try:
        with FileLock(root / LOCK_FILE, timeout=0):
            _run(settings.model_copy(update={"data_dir": root}), root, host, port, chosen)
    except Timeout:
        _fail(f"another `warpfold serve` uses {root}; stop it, or choose another --data-dir")


def _run(settings: Settings, root: Path, host: str, port: int, slots: tuple[str, ...] | None) -> None:
    logs.configure(role="serve")
    stop = Stop()
    stop.listen()
    raise_limit()
    _note(f"starting {_embedded(settings)} in {root}" if _embedded(settings) else "using the servers that are set")
    try:
        with ThreadPoolExecutor(1) as importer:
            # This process waits for the servers most of the time.
            importing = importer.submit(import_service)
            servers = start_servers(settings, root)
            try:
                importing.result()
            except BaseException:  # the installation is broken
                servers.stop()
                raise
    except ServerMissing as error:
        _fail(str(error))
    processes = []
    nursery = Nursery(import_service)  # before the driver of GPUs is asked for them: its state would be forked
    try:
        slots = slots or default_slots()
        _note("bringing the schema up to date")
        # In a process of its own, so that what only this step imports and computes does not stay.
        body = partial(prepare_database, servers.database_url, root)
        if nursery.start(Order("warpfold.worker.serve.bootstrap", body)).wait():
            sys.exit(1)
        processes = service_processes(servers, settings, host, port, slots, nursery=nursery)
        _note(f"starting the api, the dispatcher and the slots {', '.join(slots)}")
        for process in processes:
            process.start()
        if "cpu" in slots and not (root / "cache" / "numba").exists():
            _note("the slot cpu compiles on this first start: the first job of each kind takes some seconds longer")
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if wait_until_ready(processes, servers, url, stop, _note):
            write_secret(root / URL_FILE, url)
            # Programs wait for this line, letter by letter.
            _say(f"Warpfold ready at {url}")
            with Reports(servers.database_url) as reports:
                keep_alive(processes, servers, stop, HangDetector(url, reports), settings.log_max_bytes)
    except NotReady as error:
        _fail(str(error))
    except OperationalError as error:
        _fail(f"the database cannot be used: {first_line(error)}")
    finally:
        nursery.close()
        shut_down(processes, servers)


def _embedded(settings: Settings) -> str:
    """The servers that this command starts by itself."""
    return " and ".join(
        name for name, url in (("Postgres", settings.database_url), ("Redis", settings.redis_url)) if not url
    )


def _note(stage: str) -> None:
    """Say what goes on, for people."""
    with suppress(OSError, ValueError):  # nobody listens, or the disk is full
        print(f"warpfold serve: {stage}", file=sys.stderr, flush=True)


def _say(line: str) -> None:
    try:
        print(line, flush=True)
    except (OSError, ValueError):  # nobody listens, or the disk is full
        sys.stdout = None  # else Python fails over it once more at its end


def _fail(message: str) -> NoReturn:
    typer.echo(f"warpfold serve: {message}", err=True)
    sys.exit(1)


def default_slots() -> tuple[str, ...]:
    """A slot for each visible GPU, the gang of several GPUs, and the CPU."""
    gpus = gpu_count()
    return (*(f"cuda:{index}" for index in range(gpus)), *([GANG] if gpus > 1 else []), "cpu")


def parse_slots(text: str) -> tuple[str, ...]:
    """The slots that a text such as "cpu,cuda:0" names. Raises ValueError for any other text."""
    slots = tuple(part.strip() for part in text.split(",") if part.strip())
    if not slots:
        raise ValueError("name at least one slot, for example cpu or cuda:0,cpu")
    for slot in slots:
        if not _SLOT.fullmatch(slot):
            raise ValueError(f"{slot!r} is not a slot; slots are cpu, cuda:0, cuda:1, …, gang and dask")
        if slots.count(slot) > 1:
            raise ValueError(f"{slot!r} is named twice")
    return slots
