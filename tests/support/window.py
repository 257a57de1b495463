"""A window of a browser as far as HTTP goes, for tests of the dashboard that need no browser."""

import httpx

from tests.support.api import Api
from warpfold.app.auth.access_tokens import Role, create_token


class Window(httpx.Client):
    """A browser's window as far as HTTP goes: it keeps cookies and says where its forms come from. "vera" is a viewer,
    the others are those of `Api`."""

    def __init__(self, api: Api) -> None:
        super().__init__(base_url=api.url, headers={"Origin": api.url}, timeout=300)
        self._api = api

    def sign_in(self, user: str = "ann") -> "Window":
        token = self._api.database.run(create_token, "vera", Role.VIEWER) if user == "vera" else self._api.tokens[user]
        answer = self.post("/sign-in", data={"token": token})
        assert answer.status_code == 303, answer.text
        return self
