"""`python -m tests.support.workers.wedged_dispatcher FILE`: a dispatcher that stands still when it first leads.

The process lives, hears signals and keeps its sessions, but its loop does not turn. Once FILE exists, it works.
"""

import sys
import threading
from pathlib import Path


def main() -> int:
    from warpfold.worker import dispatcher

    note = Path(sys.argv.pop(1))
    if not note.exists():

        def stand_still(_self: dispatcher.Dispatcher) -> None:
            note.touch()
            threading.Event().wait()

        vars(dispatcher)["Dispatcher"] = type("Wedged", (dispatcher.Dispatcher,), {"deliver": stand_still})
    return dispatcher.main()


if __name__ == "__main__":
    sys.exit(main())
