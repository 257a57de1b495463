"""Processes apart whose users take turns: for work that would hold the interpreter's lock for long."""

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
    """Calls functions in a few processes of its own, user after user, and for each user one function at a time."""

    def __init__(self, processes: int = 1) -> None:
        self._helpers = tuple(HelperProcess() for _ in range(processes))
        self._free = list(self._helpers)
        self._line = RoundRobin(processes)

    async def call(self, user_id: int, function: Callable[..., T], *args: Any, is_long: bool = False) -> T:
        """The result of `function` in a process. Function, arguments and result must be picklable. Where there are
        several processes, one is kept free of calls that may take long. Raises the ApiError that it raises there."""
        async with self._line.turn(user_id, is_long=is_long):
            helper = self._free.pop()
            try:
                answer = await helper.call(_attempt, function, args)
            finally:
                self._free.append(helper)  # the next call takes a process that has started
        if isinstance(answer, _Refused):
            raise answer.kind(answer.detail, errors=answer.errors)
        result: T = answer
        return result

    def close(self) -> None:
        """End the processes."""
        for helper in self._helpers:
            helper.close()


def _attempt(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of `function`, or the ApiError that it raised in a form that can travel between processes."""
    try:
        return function(*args)
    except ApiError as error:
        return _Refused(type(error), str(error.detail), error.errors)
