"""The client against a real socket. Its life with the real service is in tests/integration."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from client.api import Client
from client.errors import FieldError, Refused, Unreachable

JOB = {
    "id": "5f0c",
    "kind": "reduce",
    "status": "queued",
    "owner": "ada",
    "attempt": 1,
    "reason": None,
    "error": None,
    "progress": {"done": 0, "total": 0, "unit": ""},
    "queue_position": 1,
    "created_at": "2026-11-21T00:00:00Z",
    "started_at": None,
    "finished_at": None,
    "result": None,
}


class Wire(ThreadingHTTPServer):
    """Plays back raw answers and keeps the idempotency keys that it was sent: what HTTP libraries get on the wire."""

    def __init__(self, answers: list[tuple[int, dict[str, str], object]]) -> None:
        self.answers = answers
        self.keys: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Playback)


class Playback(BaseHTTPRequestHandler):
    server: Wire

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers["Idempotency-Key"])
        status, headers, body = self.server.answers.pop(0)
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test's output is enough."""


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Wire([])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _client(wire: Wire, patience_s: float = 5.0) -> Client:
    return Client(f"http://127.0.0.1:{wire.server_address[1]}", "wf_x", patience_s=patience_s)


def test_a_busy_service_is_asked_again_with_the_same_key(wire: Wire) -> None:
    wire.answers = [(503, {"Retry-After": "0"}, {}), (429, {"Retry-After": "0"}, {}), (202, {}, JOB)]
    with _client(wire) as client:
        assert client.submit({}).id == "5f0c"
    assert len(wire.keys) == 3
    assert len(set(wire.keys)) == 1


def test_a_problem_names_the_fields_that_are_wrong(wire: Wire) -> None:
    problem = {"title": "Invalid request", "status": 422, "errors": [{"field": "op", "message": "unknown op 'sun'"}]}
    wire.answers = [(422, {"Content-Type": "application/problem+json"}, problem)]
    with _client(wire) as client, pytest.raises(Refused, match="op: unknown op 'sun'") as refusal:
        client.submit({})
    assert refusal.value.errors == (FieldError("op", "unknown op 'sun'"),)


def test_an_answer_that_is_no_problem_document_is_shown_as_it_is(wire: Wire) -> None:
    wire.answers = [(418, {}, "short and stout")]
    with _client(wire) as client, pytest.raises(Refused, match="short and stout"):
        client.submit({})


def test_a_service_that_stays_away_is_reported_after_the_patience(wire: Wire) -> None:
    port = wire.server_address[1]
    wire.shutdown()
    wire.server_close()
    with Client(f"http://127.0.0.1:{port}", "wf_x", patience_s=0.3) as client, pytest.raises(Unreachable):
        client.job("5f0c")
