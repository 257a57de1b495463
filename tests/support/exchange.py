"""One attempt in the child of a slot, without a group and without a database."""

import time
from collections.abc import Callable

from warpfold.app.jobs.attempt import Failure, Lease, Success
from warpfold.worker.lease_exchange import Died, EndCause, Ending, Hung
from warpfold.worker.messages import News, Pulse
from warpfold.worker.slot import Slot


def ending_of(
    slot: Slot,
    lease: Lease,
    timeout_s: float = 60.0,
    heard: Callable[[News | Pulse | None], object] = lambda news: None,
) -> Ending:
    """How the child's attempt ends; it is ended after `timeout_s`. `heard` is called with all news, and with None
    where none came for a while."""
    until = time.monotonic() + timeout_s
    with slot.exchange() as exchange:
        exchange.send(lease)
        while (left_s := until - time.monotonic()) > 0:
            received = exchange.receive(min(left_s, 0.05))
            if isinstance(received, Success | Failure | EndCause | Died | Hung):
                return received
            heard(received)
    return EndCause.TIMEOUT
