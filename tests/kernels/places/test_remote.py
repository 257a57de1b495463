"""One object, read in ranges: what passes is tried again, and what changed or cannot be read is told."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.places.web import (
    HURRIED,
    Behaviour,
    WebServer,
    as_usual,
    cut,
    hang,
    no_ranges,
    redirect,
    stall,
    status,
    web_server,
    wrong_length,
)
from warpfold.kernels.errors import InvalidInput, KernelError, Unavailable
from warpfold.kernels.places import remote
from warpfold.kernels.places.place import Place, Places
from warpfold.kernels.places.remote import IN_FLIGHT, REQUEST_BYTES, NotThere, RemoteObject, RetryPolicy, Session
from warpfold.kernels.places.transport import Timeouts

CONTENT = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PIECE", 100)


def opened(web: WebServer, *others: Place, retry_policy: RetryPolicy = HURRIED, first: int = 1000) -> RemoteObject:
    web.files.setdefault("x", CONTENT)
    session = web.session(*others, retry_policy=retry_policy)
    return RemoteObject(session, session.places.target(web.url("x"), ""), first)


def whole(web: WebServer, *behaviours: Behaviour, retry_policy: RetryPolicy = HURRIED) -> bytes:
    """All of the object, of which the first requests are answered so."""
    web.behaviours[:] = behaviours
    remote = opened(web, retry_policy=retry_policy)
    ranges = ((at, min(at + 3000, remote.size)) for at in range(0, remote.size, 3000))
    return b"".join(bytes(part) for part in remote.in_order(ranges))


def fails(web: WebServer, *behaviours: Behaviour) -> KernelError:
    with pytest.raises(KernelError) as caught:
        whole(web, *behaviours)
    return caught.value


def test_the_first_range_tells_size_and_etag_which_all_others_must_match(web: WebServer) -> None:
    assert whole(web) == CONTENT
    first, *others = web.asked
    assert "if-match" not in first[1]
    assert others
    assert {headers["if-match"] for _, headers in others} == {opened(web).etag}


def test_a_small_object_takes_one_request(web: WebServer) -> None:
    web.files["x"] = b"small"
    assert whole(web) == b"small"
    assert web.ranges() == ["bytes=0-999"]


@pytest.mark.parametrize("answer", [as_usual, status(416), no_ranges])
def test_an_empty_object_has_no_bytes(web: WebServer, answer: Behaviour) -> None:
    web.files["x"] = b""
    assert whole(web, answer) == b""


@pytest.mark.parametrize(
    "passing",
    [cut(0), cut(1), cut(750), status(503), status(500), status(429, Retry_After="0"), status(408), wrong_length],
)
def test_what_passes_is_tried_again(web: WebServer, passing: Behaviour) -> None:
    assert whole(web, passing) == CONTENT
    web.behaviours.clear()
    assert whole(web, as_usual, passing, passing) == CONTENT


def test_a_range_goes_on_where_its_connection_was_cut(web: WebServer) -> None:
    assert whole(web, cut(750)) == CONTENT
    assert web.ranges()[:2] == ["bytes=0-999", "bytes=750-999"]


@pytest.mark.parametrize("fault", [cut, stall], ids=["cut", "stalled"])
def test_what_came_before_a_fault_is_not_asked_for_again(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, fault: Callable[[int], Behaviour]
) -> None:
    monkeypatch.setattr(remote, "_PIECE", 1 << 22)
    web.files["x"] = content = np.random.default_rng().bytes(600_000)
    retry_policy = RetryPolicy(retries=1, first_s=0.001, timeouts=Timeouts(read_s=0.2))
    web.behaviours[:] = [as_usual, fault(250_000)]
    assert bytes(opened(web, retry_policy=retry_policy).read(0, len(content))) == content
    assert web.ranges() == ["bytes=0-999", "bytes=1000-599999", "bytes=251000-599999"]


def test_a_server_that_is_away_is_unavailable_after_some_tries(web: WebServer) -> None:
    error = fails(web, *[status(503, b"<Code>SlowDown</Code>")] * 4)
    assert isinstance(error, Unavailable)
    assert str(error) == "its server did not send it, after 4 tries: it answered 503 SlowDown"


def test_a_connection_that_nobody_takes_is_told_in_plain_words() -> None:
    with web_server() as gone:
        pass
    with pytest.raises(Unavailable, match="after 4 tries: connection refused"):
        opened(gone)


def test_a_server_that_says_nothing_is_given_up(web: WebServer) -> None:
    retry_policy = RetryPolicy(retries=1, first_s=0.001, timeouts=Timeouts(read_s=0.05))
    web.behaviours[:] = [hang, hang]
    with pytest.raises(Unavailable, match="did not answer in time"):
        opened(web, retry_policy=retry_policy)


@pytest.mark.parametrize("etags", [True, False])
def test_an_object_that_changes_while_it_is_read_is_refused(web: WebServer, etags: bool) -> None:
    web.etags = etags
    remote = opened(web)
    web.files["x"] = CONTENT[::-1] if etags else CONTENT + b"more"
    with pytest.raises(InvalidInput, match="changed while it was read"):
        remote.read(2000, 2010)
    assert remote.fault is not None


def test_an_object_that_is_deleted_while_it_is_read_is_refused(web: WebServer) -> None:
    remote = opened(web)
    del web.files["x"]
    with pytest.raises(InvalidInput, match="changed while it was read"):
        remote.read(2000, 2010)


def test_an_etag_that_changes_is_noticed_though_the_server_ignores_conditions(web: WebServer) -> None:
    remote = opened(web)
    remote.etag = None
    remote.modified = "Sat, 21 Nov 2026 15:00:00 GMT"
    web.etags = False
    with pytest.raises(InvalidInput, match="changed while it was read"):
        remote.read(2000, 2010)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(401), "may not be read with the credentials of this server's configuration"),
        (status(403, b"<Error><Code>AccessDenied</Code><Message>hush</Message></Error>"), "(403 AccessDenied)"),
        (status(404), "is not there"),
        (status(400, b"<Error><Code>ExpiredToken</Code></Error>"), "credentials for it have expired"),
        (status(403, b"<Error><Code>ExpiredToken</Code></Error>"), "credentials for it have expired"),
        (status(418, b"hush"), "its server answered 418"),
        (no_ranges, "its server gives no ranges of bytes"),
        (status(206, b"hush"), "does not say which bytes"),
        (redirect("https://elsewhere.example.org/hush"), "redirects to an address outside of the places"),
        (redirect("http://169.254.169.254/latest/hush"), "redirects to an address outside of the places"),
        (redirect("http://127.0.0.1:1/hush"), "redirects to an address outside of the places"),
        (redirect(""), "redirects"),
    ],
)
def test_what_does_not_pass_is_told_at_once_and_quotes_nothing(web: WebServer, answer: Behaviour, why: str) -> None:
    error = fails(web, answer)
    assert why in str(error)
    assert "hush" not in str(error)
    assert len(web.asked) == 1


def test_what_is_not_there_can_be_told_from_other_faults(web: WebServer) -> None:
    assert isinstance(fails(web, status(404)), NotThere)


def test_a_redirect_within_the_places_is_followed_with_the_credentials_of_where_it_leads(web: WebServer) -> None:
    with web_server() as other:
        other.files["y"] = CONTENT
        web.behaviours[:] = [redirect(other.url("y") + "?sig=hush"), redirect("/x")]
        mine = Place(web.root + "x", private=True, secrets={"Authorization": "mine"})
        remote = opened(web, mine, other.place(secrets={"Authorization": "theirs"}))
        assert remote.read(2000, 2010) == CONTENT[2000:2010]
        assert [headers["authorization"] for _, headers in web.asked] == ["mine"]
        assert {headers["authorization"] for _, headers in other.asked} == {"theirs"}
        assert other.asked[0][0] == "/y?sig=hush"
        assert remote.url == web.url("x")


def test_redirects_in_a_circle_end(web: WebServer) -> None:
    assert "redirects more than 5 times" in str(fails(web, *[redirect("/x")] * 6))


def test_a_redirect_that_expires_is_asked_for_again(web: WebServer) -> None:
    web.files["y"] = CONTENT
    web.behaviours[:] = [redirect("/y"), as_usual, status(403)]
    remote = opened(web)
    assert remote.read(2000, 2010) == CONTENT[2000:2010]
    assert [path for path, _ in web.asked] == ["/x", "/y", "/y", "/x"]


def test_few_requests_are_under_way_and_their_bytes_come_in_order(web: WebServer) -> None:
    together, most, lock = 0, 0, threading.Lock()

    def counted(handler: object, content: bytes) -> None:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        as_usual(handler, content)  # type: ignore[arg-type]
        with lock:
            together -= 1

    remote = opened(web)
    web.behaviours[:] = [counted] * 2000
    ranges = [(at, at + 10) for at in range(1000, len(CONTENT), 10)]
    parts = remote.in_order(iter(ranges))
    assert bytes(next(parts)) == CONTENT[1000:1010]
    assert len(web.asked) <= 2 + 2 * IN_FLIGHT
    assert b"".join(bytes(part) for part in parts) == CONTENT[1010:]
    assert most <= IN_FLIGHT


def test_reading_that_is_broken_off_asks_for_no_more(web: WebServer) -> None:
    remote = opened(web)
    parts = remote.in_order((at, at + 10) for at in range(1000, 10_000, 10))
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert len(web.asked) <= 2 + 2 * IN_FLIGHT


def test_memory_of_a_range_is_lent_again_when_no_view_of_it_is_left() -> None:
    session = Session(Places(()))
    first = session.lent(REQUEST_BYTES)
    first[:] = 7
    view, address = first[10:20], first.ctypes.data
    del first
    second = session.lent(REQUEST_BYTES)
    second[:] = 1
    assert view.tolist() == [7] * 10
    del view
    assert session.lent(REQUEST_BYTES - 1).ctypes.data == address
    assert session.lent(100).size == 100
