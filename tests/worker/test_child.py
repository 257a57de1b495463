"""The pipe between parent and child: real pipes, with a reader or a writer that does its part late or never."""

import pickle
import threading
import time
from collections.abc import Iterator
from socket import socket

import pytest

from warpfold.worker.child import ChildEnd, ParentEnd, PipeClosed, _ProgressSender, pipe
from warpfold.worker.messages import Progress

LARGE = "x" * 20_000_000


@pytest.fixture
def ends() -> Iterator[tuple[ParentEnd, socket]]:
    ours, theirs = pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def until_received(ours: ParentEnd) -> object:
    give_up = time.monotonic() + 60
    while (message := ours.receive()) is None:
        assert time.monotonic() < give_up
        ours.wait(1.0)
    return message


def test_large_messages_pass_both_ways(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends

    def echo() -> None:
        child = ChildEnd(theirs)
        for _ in range(3):
            child.send(child.receive())

    echoing = threading.Thread(target=echo)
    echoing.start()
    for message in ("small", LARGE, "small again"):
        ours.send(message)
        while ours.wait(60.0) == []:
            ours.flush()
        assert until_received(ours) == message
    echoing.join()


def test_what_nobody_reads_keeps_nobody_waiting(ends: tuple[ParentEnd, socket]) -> None:
    ours, _ = ends
    ours.send(LARGE)
    ours.flush()
    assert ours.wait(0.0) == []


def test_half_a_message_is_none_and_the_rest_completes_it(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends
    body = pickle.dumps("hello")
    whole = len(body).to_bytes(8, "big") + body
    for cut in (3, 8, 12):
        theirs.sendall(whole[:cut])
        assert ours.receive() is None
        assert ours.wait(0.0) == []
        theirs.sendall(whole[cut:])
        assert until_received(ours) == "hello"


def test_messages_that_came_together_are_received_one_by_one(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends
    child = ChildEnd(theirs)
    for number in range(3):
        child.send(number)
    assert [until_received(ours) for _ in range(3)] == [0, 1, 2]


def test_the_last_words_of_one_who_is_gone_are_received(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends
    ChildEnd(theirs).send("farewell")
    theirs.close()
    assert until_received(ours) == "farewell"
    with pytest.raises(PipeClosed):
        ours.receive()


def test_a_child_hears_that_its_parent_is_gone(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends
    ours.close()
    with pytest.raises(PipeClosed):
        ChildEnd(theirs).receive()


def test_progress_that_was_kept_back_is_sent_once_and_never_behind_the_end(ends: tuple[ParentEnd, socket]) -> None:
    ours, theirs = ends
    news = _ProgressSender(ChildEnd(theirs))
    for step in (1, 2):  # within the first tenth of a second, for which all progress is kept back
        news(Progress(step, 9, "steps"))
    news.send_rest()
    news.send_rest()
    assert until_received(ours) == Progress(2, 9, "steps")
    news(Progress(3, 9, "steps"))
    news.end()
    news.send_rest()
    assert ours.receive() is None
