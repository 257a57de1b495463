"""Routes of the dashboard. Their errors are pages with the same words as the api's problems."""

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
from warpfold.app.http.errors import ApiError, TooLarge, Unavailable
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.app.http.requests import declared_bytes


class PageRoute(APIRoute):
    """A route of the dashboard. Its form is small, because somebody typed it. A larger form is refused before it is
    parsed: anybody may send one, even to the sign-in page, and parsing it holds up all other requests."""

    takes_large_forms = False

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                if not self.takes_large_forms:
                    await _refuse_large(request)
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
    """A page that shows `error`, or a part of a page where htmx asked for a part."""
    if request.headers.get("hx-request"):
        return part("error_part", error=error).response(request, error.status)
    answer = page(request, "error", error.status, user=getattr(request.state, "visitor", None), error=error)
    answer.headers.update(error.headers or {})
    return answer


class LargeFormRoute(PageRoute):
    """A route whose endpoint reads its form itself, beside the event loop where the form is large."""

    takes_large_forms = True


def router(route: type[PageRoute] = PageRoute) -> APIRouter:
    """A router of pages. Each of their forms must come from a page of the dashboard."""
    return APIRouter(route_class=route, include_in_schema=False, dependencies=[Depends(own_form)])


async def _refuse_large(request: Request) -> None:
    """Raise TooLarge for a form of too many bytes. Starlette itself counts the fields."""
    if request.method in ("GET", "HEAD"):
        return
    too_large = TooLarge(f"A form may have at most {LARGE_BYTES} bytes here.", headers={"Connection": "close"})
    if (declared_bytes(request.headers) or 0) > LARGE_BYTES:
        raise too_large
    if len(await request.body()) > LARGE_BYTES:
        raise too_large
