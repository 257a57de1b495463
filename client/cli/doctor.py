"""The command that looks for broken parts of an installation: doctor."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version

import typer
from rich.text import Text

from warpfold.__main__ import server_installed
from warpfold.client.api import Client
from warpfold.client.catalogue import Worker
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Session
from warpfold.client.errors import NotConfigured, Refused, WarpfoldError
from warpfold.client.exchange import certificates
from warpfold.client.http import httpx
from warpfold.client.settings import Surroundings, find_target
from warpfold.client.upload_transport import transports
from warpfold.contract.wording import number_of
from warpfold.kernels.machine.extras import install

_PATIENCE_S = 10.0
_APART_S = 5
"""Clocks that are so far apart confuse people; the header Date has whole seconds."""
_STYLES = {"ok": "green", "warning": "yellow", "broken": "bold red", "absent": "dim"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A checked part, its state ("ok", "warning", "broken", "absent"), and what to do about it."""

    part: str
    verdict: str
    detail: str
    advice: str = ""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Server", epilog="Example: warpfold doctor --json | jq 'select(.verdict==\"broken\")'")(
        doctor
    )


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check the way to the service and this machine, and say how to mend what is broken.

    Where the server is installed, that is driver, CUDA, NVRTC, NCCL, Postgres, Redis, folders, memory and disk. Exit
    code 1 if something is broken.
    """
    session: Session = context.obj
    findings = []
    for finding in _examine(session.url):
        findings.append(finding)
        if as_json:
            output.lines([asdict(finding)])
    if not as_json:
        _print(findings)
    if any(finding.verdict == "broken" for finding in findings):
        raise typer.Exit(Exit.FAILED)


def _examine(url: str | None) -> Iterator[Finding]:
    yield Finding("client", "ok", f"warpfold {version('warpfold')}")
    try:
        yield from _files_with_tokens()
        yield from _service(url)
    except NotConfigured as error:
        yield Finding("settings", "broken", str(error), "correct the file")
    if server_installed():
        yield from _server()
    else:
        yield Finding("server", "absent", "not installed here", f"to run one: `make serve`, or {install('embedded')}")


def _files_with_tokens() -> Iterator[Finding]:
    where = Surroundings.of_process()
    files = [("login file", where.config_file)] if where.config_file.exists() else []
    if where.settings_file is not None and "token" in where.in_file():
        files.append(("settings", where.settings_file))
    for part, path in files:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding(part, "broken", f"{path} holds a token, and others may read it", f"chmod 600 {path}")


def _service(url: str | None) -> Iterator[Finding]:
    try:
        target = find_target(url)
    except NotConfigured as error:
        problem, _, advice = str(error).partition(": ")
        yield Finding("service", "absent", problem, advice)
        return
    try:
        with Client(target.url, target.token, patience_s=0) as client:
            user, workers = client.whoami(), client.workers()
    except Refused as refusal:
        yield Finding("service", "broken", f"{target.url}: {refusal}", f"run `warpfold login {target.url}`")
    except WarpfoldError as error:
        here = target.origin == str(Surroundings.of_process().data_dir)
        advice = "start it by `warpfold serve`" if here else "check the address, and that the service runs"
        yield Finding("service", "broken", str(error), advice)
    else:
        live = [worker for worker in workers if worker.state in ("idle", "running")]
        rights = {"admin": "admin", "viewer": "viewer, who changes nothing"}.get(user.role, user.role)
        answer = f"{target.url} takes you for {user.name} ({rights}); {number_of('live worker', len(live))}"
        yield Finding("service", "ok" if live else "warning", answer, "" if live else "start a worker: jobs wait")
        yield from _slots(workers)
        yield from _versions({worker.version for worker in live})
        yield from _readiness(target.url)


def _slots(workers: Sequence[Worker]) -> Iterator[Finding]:
    """What each slot does. One that was lost or is drained takes no job."""
    workers = [worker for worker in workers if worker.state != "stopped"]
    if workers:
        states = ", ".join(f"{worker.slot} of {worker.host} is {worker.state}" for worker in workers)
        wrong = {worker.state for worker in workers} & {"lost", "drained", "draining"}
        advice = "start lost workers again; an admin resumes drained ones" if wrong else ""
        yield Finding("slots", "warning" if wrong else "ok", states, advice)


def _versions(theirs: Set[str]) -> Iterator[Finding]:
    own = version("warpfold")
    if theirs - {own}:
        yield Finding(
            "versions",
            "warning",
            f"the service runs {' and '.join(sorted(theirs))}, this client is {own}",
            "install the same version; they work together where neither needs what the other lacks",
        )


def _readiness(url: str) -> Iterator[Finding]:
    """Whether all is there that a job needs, and how far the clocks are apart."""
    try:
        with httpx.Client(mounts=transports(url), verify=certificates(url), timeout=_PATIENCE_S) as client:
            answer = client.get(f"{url}/readyz")
    except httpx.HTTPError as error:
        yield Finding("ready", "warning", f"/readyz does not answer: {error}", "look into the log of the api")
        return
    checks = answer.json() if answer.is_success else answer.json().get("checks", {})
    words = ", ".join(f"{name} {state}" for name, state in checks.items())
    if answer.is_success:
        yield Finding("ready", "ok", f"a job would run: {words}")
    else:
        yield Finding("ready", "broken", f"a job would wait: {words}", "start what is missing")
    date = answer.headers.get("date")
    if date is not None:
        ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
        if abs(ahead) > _APART_S:
            side = "ahead of" if ahead > 0 else "behind"
            detail = f"this machine's is {abs(ahead):.0f} s {side} that of the api"
            yield Finding("clocks", "warning", detail, "set both by NTP: times of logs and of searches differ")
        else:
            yield Finding("clocks", "ok", f"not more than {_APART_S} s apart")


def _server() -> Iterator[Finding]:
    """The findings of the server's own doctor, which runs in a separate process, because the client has none of the
    server's packages."""
    command = [sys.executable, "-P", "-m", "warpfold.worker.doctor"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        printed, wrong = process.communicate()
    for line in printed.splitlines():
        yield Finding(**json.loads(line))
    if process.returncode not in (0, 1) or (wrong and not printed):
        yield Finding("server", "broken", (wrong.strip().splitlines() or ["no word"])[-1], "install it again")


def _print(findings: list[Finding]) -> None:
    rows = (
        (
            Text(finding.verdict, style=_STYLES.get(finding.verdict, "")),
            finding.part,
            finding.detail + (f"\n→ {finding.advice}" if finding.advice else ""),
        )
        for finding in findings
    )
    output.table(("verdict", "part", "finding"), rows, fold="finding", headed=False)
