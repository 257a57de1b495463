"""A user with a browser."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Response

from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.db import BlockingDatabase
from warpfold.client.api import Client
from warpfold.client.demo.service import Service

NAMES = {"ann": Role.USER, "vera": Role.VIEWER, "root": Role.ADMIN}
SUM: Mapping[str, Any] = {
    "kind": "reduce",
    "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"},
}
LONG: Mapping[str, Any] = {
    "kind": "reduce",
    "source": {"type": "generate", "distribution": "normal", "n": 1 << 40, "dtype": "float32"},
}
BENCHMARK: Mapping[str, Any] = {
    "kind": "benchmark",
    "strategies": ["exact", "numpy"],
    "sizes": [1000, 10_000, 100_000],
    "caches": ["hot"],
    "time_limit_s": 0.1,
}


@dataclass(frozen=True)
class Dashboard:
    """A running service: its address, and the tokens of ann (a user), vera (a viewer) and root (an admin)."""

    url: str
    data_dir: Path
    database_url: str
    tokens: Mapping[str, str]

    @classmethod
    def of(cls, service: Service, data_dir: Path) -> "Dashboard":
        url = (data_dir / "database_url").read_text().strip()
        database = BlockingDatabase(url, application="test")
        tokens = {name: database.run(create_token, name, role) for name, role in NAMES.items()}
        database.close()
        return cls(service.url, data_dir, url, tokens)

    def client(self, user: str = "ann") -> Client:
        return Client(self.url, self.tokens[user])

    def ended(self, spec: Mapping[str, Any], user: str = "ann") -> str:
        """Run a job to its end; its id."""
        with self.client(user) as client:
            return client.wait(client.submit(spec)).id


@dataclass
class Visit:
    """A page that one user has opened."""

    dashboard: Dashboard
    page: Page
    complaints: list[str] = field(default_factory=list)
    statuses: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def begin(cls, context: BrowserContext, dashboard: Dashboard, user: str | None, width: int, scheme: str) -> "Visit":
        """A new page in a browser that has been here before, but keeps nothing of it: no cookie and no storage. The
        user's session is in its cookies, and the page is yet to go anywhere."""
        visit = cls(dashboard, context.new_page())
        visit.page.set_viewport_size({"width": width, "height": 800})
        visit.page.emulate_media(color_scheme=cast(Literal["light", "dark"], scheme), reduced_motion="reduce")
        everything = {"origin": dashboard.url, "storageTypes": "all"}
        context.new_cdp_session(visit.page).send("Storage.clearDataForOrigin", everything)
        context.clear_cookies()
        visit.page.on("console", visit._hear)
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("response", visit._note)
        if user is not None:  # what the form sends; the tests of signing in fill in the form itself
            answer = context.request.post(
                "/sign-in",
                form={"token": dashboard.tokens[user]},
                headers={"Origin": dashboard.url},
                max_redirects=0,
            )
            assert answer.status == 303, answer.text()
        return visit

    def sign_in(self, token: str) -> None:
        self.page.get_by_label("Access token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def answers(self, path: str) -> list[int]:
        """The statuses of the answers from `path` so far."""
        return [status for url, status in self.statuses if url.partition("?")[0].endswith(path)]

    def width_needed(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def _hear(self, message: ConsoleMessage) -> None:
        # A request that found nobody, or was overtaken by the next one, is told as an error, too.
        expected = message.text.startswith(("htmx:", "Failed to load resource"))
        if message.type == "error" and not expected:
            self.complaints.append(message.text)

    def _note(self, response: Response) -> None:
        self.statuses.append((response.url, response.status))
