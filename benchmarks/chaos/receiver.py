"""A receiver of webhooks that refuses some messages, and checks the signatures of all."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from standardwebhooks import Webhook, WebhookVerificationError

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The secret that signs the messages. It protects nothing: the receiver and the service are of one run."""

_REFUSED = 0.1
_MOST_REFUSALS = 3
"""Of one message: the pause after the fourth is half an hour, for which the drill does not wait."""


@dataclass
class Received:
    """The messages that were accepted, by their ids, with the number of times, and how many had a bad signature."""

    url: str
    accepted: dict[str, int] = field(default_factory=dict)
    forged: int = 0


@contextmanager
def receiver(seed: int) -> Iterator[Received]:
    """Receive messages within the block. One in ten is refused with 503, and no message more than three times."""
    draw, lock, refusals = random.Random(seed), Lock(), Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                Webhook(SECRET).verify(body, dict(self.headers.items()))
            except WebhookVerificationError:
                received.forged += 1
            message = self.headers["webhook-id"]
            with lock:
                refused = draw.random() < _REFUSED and refusals[message] < _MOST_REFUSALS
                if refused:
                    refusals[message] += 1
                else:
                    received.accepted[message] = received.accepted.get(message, 0) + 1
            self.send_response(503 if refused else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: thousands of messages come."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Received(f"http://127.0.0.1:{server.server_port}/")
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            yield received
        finally:
            server.shutdown()
            serving.join()
