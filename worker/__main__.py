"""`python -m warpfold.worker --slot cpu|cuda:0|gang|dask`: one worker."""

import sys


def main() -> int:
    # The imports are here, because the spawned child runs this module, too, and does not need them.
    import argparse
    from functools import partial

    import structlog
    from pydantic import ValidationError

    from warpfold.app import logs
    from warpfold.app.config import Settings, load_settings
    from warpfold.contract.needs import DASK
    from warpfold.kernels.cpu.memory import share_of_memory
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.child import open_kernels, prepare_kernels
    from warpfold.worker.dask.options import ClusterOptions
    from warpfold.worker.stop import Stop

    parser = argparse.ArgumentParser(prog="warpfold worker", description="Serve one slot of this machine.")
    parser.add_argument(
        "--slot", required=True, help="cpu, or cuda:0, cuda:1, …, or gang: all GPUs, or dask: a cluster"
    )
    parser.add_argument(
        "--scheduler",
        help="for the slot dask: the address of its scheduler, as tcp://host:8786, in place of "
        "WARPFOLD_DASK_SCHEDULER; without either the slot starts a local cluster",
    )
    arguments = parser.parse_args()
    slot: str = arguments.slot
    if arguments.scheduler is not None and slot != DASK:
        parser.error("--scheduler is for the slot dask")
    logs.configure(role="worker", slot=slot)
    settings = load_settings()
    if arguments.scheduler is not None:
        try:
            settings = Settings.model_validate({**settings.model_dump(), "dask_scheduler": arguments.scheduler})
        except ValidationError as error:
            parser.error(f"--scheduler {error.errors()[0]['msg'].removeprefix('Value error, ')}")
    if not settings.database_url or not settings.redis_url:
        structlog.get_logger().error("set WARPFOLD_DATABASE_URL and WARPFOLD_REDIS_URL")
        return 2
    stop = Stop()
    stop.listen()
    info = describe(slot)
    cluster = ClusterOptions(settings.dask_scheduler, settings.dask_processes, settings.dask_wait_s)
    opener = partial(
        open_kernels,
        slot,
        info.id,
        settings.folders(),
        settings.cpu_cache_bytes,
        settings.rates_dir(),
        cluster=cluster,
        memory_bytes=settings.slot_memory_bytes or share_of_memory(1),
    )
    return serve_slot(settings, info, opener, stop, partial(prepare_kernels, slot))


if __name__ == "__main__":
    sys.exit(main())
