"""The client against a real socket. Its life with the real service is in tests/integration."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.support.job import JOB
from warpfold.client.api import Client
from warpfold.client.connection import Retries
from warpfold.client.errors import FieldError, Refused, Unreachable
from warpfold.contract.kinds.reduce import ReduceSpec

JOB_ID = "5f0c0000-0000-4000-8000-000000000000"


class Wire(ThreadingHTTPServer):
    """Plays back raw answers, and keeps the idempotency keys and bodies that it was sent."""

    def __init__(self, answers: list[tuple[int, dict[str, str], object]]) -> None:
        self.answers = answers
        self.keys: list[str | None] = []
        self.sent: list[bytes] = []
        super().__init__(("127.0.0.1", 0), Playback)


class Playback(BaseHTTPRequestHandler):
    server: Wire

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.server.sent.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers["Idempotency-Key"])
        self._answer()

    def _answer(self) -> None:
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


def _client(wire: Wire, patience_s: float = 60.0) -> Client:
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
        client.job(JOB_ID)


def test_a_service_that_asks_for_more_patience_than_there_is_refuses(wire: Wire) -> None:
    wire.answers = [(429, {"Retry-After": "60"}, {"title": "Too many requests or jobs", "detail": "1000 of your jobs"})]
    with _client(wire, patience_s=5.0) as client, pytest.raises(Refused, match="1000 of your jobs") as refusal:
        client.submit({})
    assert refusal.value.status == 429


def test_the_pause_that_the_service_asks_for_is_kept() -> None:
    busy = httpx.Response(503, headers={"Retry-After": "2"})
    retries = Retries(10)
    assert retries.after(busy) == 2.0
    assert Retries(1).after(busy) is None, "that would be longer than the patience"
    assert retries.after(httpx.Response(503, headers={"Retry-After": "Sat, 21 Nov 2026 00:00:00 GMT"})) is not None
    assert retries.after(httpx.Response(404)) is None


def test_pauses_grow_and_are_spread() -> None:
    retries = Retries(60)
    pauses = [retries.after(httpx.Response(503)) for _ in range(8)]
    for index, pause in enumerate(pauses):
        longest = min(2.0, 0.1 * 2**index)
        assert pause is not None
        assert longest / 2 <= pause <= longest


def test_an_upload_that_was_cut_off_is_sent_again_whole(wire: Wire) -> None:
    dataset = {
        **{"id": "ab", "name": "", "owner": "ada", "dtype": "float64", "shape": [3], "count": 3, "bytes": 152},
        **{"created_at": "2026-11-21T00:00:00Z", "last_used_at": "2026-11-21T00:00:00Z"},
    }
    wire.answers = [(404, {}, {}), (503, {"Retry-After": "0"}, {}), (201, {}, dataset)]
    with _client(wire) as client:
        assert client.upload([1.0, 2.0, 3.0]).id == "ab"
    assert wire.sent[0] == wire.sent[1]
    assert len(wire.sent[0]) == 152


def test_a_service_on_this_machine_is_asked_past_proxies(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    wire.answers = [(200, {}, JOB)]
    with _client(wire, patience_s=0) as client:
        assert client.job(JOB_ID).id == "5f0c"


def test_what_json_cannot_say_is_not_sent(wire: Wire) -> None:
    with _client(wire) as client, pytest.raises(ValueError, match="JSON"):
        client.submit({"timeout_s": float("nan")})
    assert wire.keys == []


def test_a_secret_is_sent_with_the_spec_that_names_it(wire: Wire) -> None:
    secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
    spec = ReduceSpec.model_validate(
        {
            "kind": "reduce",
            "source": {"type": "values", "values": [1]},
            "webhook": {"url": "https://hooks.example.org/", "secret": secret},
        }
    )
    wire.answers = [(202, {}, JOB)]
    with _client(wire) as client:
        client.submit(spec)
    assert json.loads(wire.sent[0])["webhook"]["secret"] == secret
