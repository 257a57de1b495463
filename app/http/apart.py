"""Processes apart whose users take turns: for work that would hold the interpreter's lock for long."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from warpfold.app.fairness.round_robin import RoundRobin
from warpfold.app.helper_process import HelperProcess
from warpfold.app.http.errors import ApiError, FieldProblem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Refused:
    kind: type[ApiError]
    detail: str
    errors: tuple[FieldProblem, ...]


class Apart:
    """Calls functions in a few processes of its own, user after user, and for each user one function at a time.

    Calls that may take long are made by the last process alone, which makes others, too, once it is warm. It is warmed
    up for its own calls, and when users first wait for each other.
    """

    def __init__(self, processes: int = 1) -> None:
        self._helpers = tuple(HelperProcess() for _ in range(processes))
        self._line = RoundRobin(processes, lent=lambda: self._helpers[-1].is_warm)
        self._warming: asyncio.Task[None] | None = None

    async def call(self, user_id: int, function: Callable[..., T], *args: Any, is_long: bool = False) -> T:
        """The result of `function` in a process. Function, arguments and result must be picklable. Raises the ApiError
        that it raises there."""
        if self._warming is None and self._line.is_busy_with_others(user_id) and not self._helpers[-1].is_warm:
            self._warming = asyncio.create_task(self._helpers[-1].call(_attempt_nothing))
        async with self._line.turn(user_id, is_long=is_long) as place:
            answer = await self._helpers[place].call(_attempt, function, args)
        if isinstance(answer, _Refused):
            raise answer.kind(answer.detail, errors=answer.errors)
        result: T = answer
        return result

    def close(self) -> None:
        """End the processes."""
        for helper in self._helpers:
            helper.close()


def _attempt_nothing() -> None:
    pass


def _attempt(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of `function`, or the ApiError that it raised in a form that can travel between processes."""
    try:
        return function(*args)
    except ApiError as error:
        return _Refused(type(error), str(error.detail), error.errors)
