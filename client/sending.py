"""How far uploads are: of a conversation, all bytes that it sends, be they one file or many, and which file is sent."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from warpfold.client.exchange import Call, Content, Portion, Steps

T = TypeVar("T")

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class UploadState:
    """The bytes of a whole that are sent, and the name of the file that is being sent: number `file` of `files`."""

    name: str
    done: int
    whole: int
    file: int
    files: int


Watch = Callable[[UploadState], None]
"""Is called with each state of an upload."""


def watched(steps: Steps[T], watch: Watch | None) -> Steps[T]:
    """The conversation, whose uploads `watch` sees."""
    if watch is None:
        return steps

    def change(call: Call[Any]) -> Call[Any]:
        content, portion = call.content, call.portion
        if content is None or portion is None:
            return call
        return replace(call, content=_Watched(content, portion, watch))

    return _changed(steps, change)


def in_turn(uploads: Sequence[tuple[str, int, Steps[T]]]) -> Steps[list[T]]:
    """Hold conversations that upload files, each with its name and its bytes, as the parts of one upload."""
    whole, before, outcomes = sum(length for _, length, _ in uploads), 0, list[T]()
    for number, (name, length, steps) in enumerate(uploads, 1):

        def change(call: Call[Any], name: str = name, before: int = before, number: int = number) -> Call[Any]:
            if call.portion is None:
                return call
            return replace(call, portion=Portion(name, before + call.portion.start, whole, number, len(uploads)))

        outcomes.append((yield from _changed(steps, change)))
        before += length
    return outcomes


def _changed(steps: Steps[T], change: Callable[[Call[Any]], Call[Any]]) -> Steps[T]:
    """The conversation with each of its calls changed."""
    try:
        call = next(steps)
        while True:
            try:
                answer = yield change(call)
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        outcome: T = end.value
        return outcome


@dataclass(frozen=True, slots=True)
class _Watched:
    """A content that is watched while it is sent."""

    content: Content
    portion: Portion
    watch: Watch

    @property
    def length(self) -> int:
        return self.content.length

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        at, shown_at = start, time.monotonic()
        self._show(at)
        for piece in self.content.pieces(start):
            size = len(piece)
            yield piece
            at += size
            if time.monotonic() >= shown_at + _EVERY_S:
                self._show(at)
                shown_at = time.monotonic()
        self._show(at)

    def _show(self, at: int) -> None:
        of = self.portion
        self.watch(UploadState(of.name, of.start + at, of.whole, of.file, of.files))
