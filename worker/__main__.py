"""`python -m warpfold.worker --slot cpu|cuda:0|gang`: one worker."""

import sys


def main() -> int:
    # Imported here, because the spawned child runs this module too, and needs none of it.
    import argparse
    from functools import partial

    import structlog

    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.child import open_kernels, prepare_kernels
    from warpfold.worker.stop import Stop

    parser = argparse.ArgumentParser(prog="warpfold worker", description="Serve one slot of this machine.")
    parser.add_argument("--slot", required=True, help="cpu, or cuda:0, cuda:1, …, or gang: all GPUs")
    slot: str = parser.parse_args().slot
    logs.configure(role="worker", slot=slot)
    settings = load_settings()
    if not settings.database_url or not settings.redis_url:
        structlog.get_logger().error("set WARPFOLD_DATABASE_URL and WARPFOLD_REDIS_URL")
        return 2
    stop = Stop()
    stop.listen()
    info = describe(slot)
    opener = partial(open_kernels, slot, info.id, settings.folders(), settings.cpu_cache_bytes, settings.rates_dir())
    return serve_slot(settings, info, opener, stop, partial(prepare_kernels, slot))


if __name__ == "__main__":
    sys.exit(main())
