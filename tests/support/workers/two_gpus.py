"""`python -m tests.support.workers.two_gpus cuda:0`: a worker of a machine with two GPUs, computing on the CPU."""

import sys


def main() -> None:
    # Imported here, because the spawned child runs this module too.
    from functools import partial

    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker import gpu_lock
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.child import open_kernels
    from warpfold.worker.stop import Stop

    gpu_lock.gpu_count = lambda: 2
    slot, settings, stop = sys.argv[1], load_settings(), Stop()
    logs.configure(role="worker", slot=slot)
    stop.listen()
    info = describe(slot)
    opener = partial(open_kernels, "cpu", info.id, settings.folders())
    sys.exit(serve_slot(settings, info, opener, stop))


if __name__ == "__main__":
    main()
