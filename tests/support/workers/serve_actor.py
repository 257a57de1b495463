"""A worker process whose child is the tests' actor: `python -m tests.support.workers.serve_actor cpu`."""

import sys


def main() -> int:
    from tests.support.workers.actor import actor, open_without_gpu
    from warpfold.app import logs
    from warpfold.app.config import load_settings
    from warpfold.worker.boot import describe, serve_slot
    from warpfold.worker.stop import Stop

    slot = sys.argv[1]
    logs.configure(role="worker", slot=slot)
    stop = Stop()
    stop.listen()
    opener = open_without_gpu if slot.startswith("cuda") else actor()
    return serve_slot(load_settings(), describe(slot), opener, stop)


if __name__ == "__main__":
    sys.exit(main())
