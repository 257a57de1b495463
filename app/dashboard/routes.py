"""Routes whose errors are pages: for people, with the same words as the api's problems."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.visitors import SignInFirst, own_form, to_sign_in
from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.error_handlers import request_problem
from warpfold.app.http.errors import ApiError, Unavailable


class PageRoute(APIRoute):
    """A route of the dashboard."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInFirst:
                return to_sign_in(request)
            except RequestValidationError as error:
                return error_page(request, request_problem(error))
            except ApiError as error:
                return error_page(request, error)
            except DATABASE_LOST:
                return error_page(request, Unavailable("The database cannot be reached at the moment; try again."))

        return shown


def error_page(request: Request, error: ApiError) -> Response:
    """What went wrong, as a page, or as a part where htmx asked for one."""
    if request.headers.get("hx-request"):
        return part("error_part", error=error).response(request, error.status)
    answer = page(request, "error", error.status, user=getattr(request.state, "visitor", None), error=error)
    answer.headers.update(error.headers or {})
    return answer


def router() -> APIRouter:
    """A router of pages, each of whose forms must come from one of them."""
    return APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(own_form)])
