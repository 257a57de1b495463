"""The command that looks for broken parts of an installation: doctor."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version

import typer
from rich.text import Text

from warpfold.__main__ import server_installed
from warpfold.client.api import Client
from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Session
from warpfold.client.errors import NotConfigured, Refused, WarpfoldError
from warpfold.client.settings import Surroundings, find_target
from warpfold.contract.wording import number_of
from warpfold.kernels.machine.extras import install

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
    yield from _login_file()
    yield from _service(url)
    if server_installed():
        yield from _server()
    else:
        yield Finding("server", "absent", "not installed here", f"to run one: `make serve`, or {install('embedded')}")


def _login_file() -> Iterator[Finding]:
    path = Surroundings.of_process().config_file
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Finding("login file", "broken", f"{path} holds tokens, and others may read it", f"chmod 600 {path}")


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
        yield Finding("service", "broken", str(error), "check the address, and that the service runs")
    else:
        live = sum(worker.state in ("idle", "running") for worker in workers)
        answer = f"{target.url} takes you for {user.name} ({user.role}); {number_of('live worker', live)}"
        yield Finding("service", "ok" if live else "warning", answer, "" if live else "start a worker: jobs wait")


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
