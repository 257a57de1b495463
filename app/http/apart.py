"""A process apart whose users take turns: for work that would hold the interpreter's lock for long."""

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
    """Calls functions in a process of its own, one at a time and user after user."""

    def __init__(self) -> None:
        self._helper = HelperProcess()
        self._line = RoundRobin()

    async def call(self, user_id: int, function: Callable[..., T], *args: Any) -> T:
        """The result of `function` in the process. Function, arguments and result must be picklable. Raises the
        ApiError that it raises there."""
        async with self._line.turn(user_id):
            answer = await self._helper.call(_attempt, function, args)
        if isinstance(answer, _Refused):
            raise answer.kind(answer.detail, errors=answer.errors)
        result: T = answer
        return result

    def close(self) -> None:
        """End the process."""
        self._helper.close()


def _attempt(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of `function`, or the ApiError that it raised in a form that can travel between processes."""
    try:
        return function(*args)
    except ApiError as error:
        return _Refused(type(error), str(error.detail), error.errors)
