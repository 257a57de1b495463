import json
import os
import re
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.client.cli import doctor


def findings(shell: Shell, code: int | None = None) -> dict[str, dict[str, str]]:
    """What the command finds, by part; its exit code is to be `code`, if that is named."""
    done = shell.run("doctor", "--json")
    assert code is None or done.code == code, done
    return {finding["part"]: finding for finding in map(json.loads, done.out.splitlines())}


def test_a_whole_service_is_well(shell: Shell, service: Service) -> None:
    shell.environment |= {
        name: value for name, value in processes.environment(service.settings).items() if name.startswith("WARPFOLD_")
    }
    by_part = findings(shell, code=0)
    for part in ("client", "service", "slots", "ready", "clocks", "python", "packages", "postgres", "data root"):
        assert by_part[part]["verdict"] == "ok", by_part[part]
    assert "takes you for ada (admin); 1 live worker" in by_part["service"]["detail"]
    assert by_part["ready"]["detail"] == "a job would run: postgres ok, redis ok, workers 1, dispatcher leads"
    assert "compiled loops" in by_part


def test_what_is_broken_is_named_with_what_to_do(shell: Shell, tmp_path: Path) -> None:
    shell.environment = {
        "WARPFOLD_URL": "http://127.0.0.1:9",
        "WARPFOLD_TOKEN": "wf_x",
        "WARPFOLD_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "WARPFOLD_REDIS_URL": "redis://127.0.0.1:9",
        "WARPFOLD_DATA_ROOTS": str(tmp_path / "nowhere"),
    }
    assert shell.run("doctor").code == 1
    broken = {part: finding for part, finding in findings(shell).items() if finding["verdict"] == "broken"}
    assert set(broken) == {"service", "postgres", "redis", "data root"}
    assert all(finding["advice"] for finding in broken.values())
    assert "WARPFOLD_DATABASE_URL" in broken["postgres"]["advice"]


class _Unready(BaseHTTPRequestHandler):
    """An api whose clock is an hour behind, and whose service has no worker."""

    def do_GET(self) -> None:
        body = b'{"checks": {"postgres": "ok", "workers": 0}}'
        self.send_response_only(503)
        self.send_header("Date", format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_what_a_job_would_wait_for_and_a_clock_that_is_wrong_are_named() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Unready) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            ready, clocks = doctor._readiness(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
    assert (ready.verdict, ready.detail) == ("broken", "a job would wait: postgres ok, workers 0")
    assert clocks.verdict == "warning"
    assert re.fullmatch(r"this machine's is 36\d\d s ahead of that of the api", clocks.detail)


def test_another_version_of_the_service_is_named() -> None:
    [finding] = doctor._versions({"9.9"})
    assert (finding.verdict, "the service runs 9.9, this client is " in finding.detail) == ("warning", True)
    assert list(doctor._versions({version("warpfold")})) == []


def test_a_token_in_a_file_of_settings_that_others_may_read_is_named(shell: Shell) -> None:
    file = shell.folder / "warpfold.toml"
    file.write_text('url = "http://127.0.0.1:9"\ntoken = "wf_x"')
    file.chmod(0o644)
    shell.environment = {}
    done = shell.run("doctor", "--json")
    assert f"{file} holds a token, and others may read it" in done.out


def test_a_setting_that_is_wrong_is_named(shell: Shell) -> None:
    shell.environment["WARPFOLD_LEASE_S"] = "-1"
    assert "WARPFOLD_LEASE_S" in findings(shell)["settings"]["detail"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_named(shell: Shell) -> None:
    folder = shell.folder / ".warpfold"
    folder.mkdir(mode=0o500)
    assert findings(shell)["data folder"]["verdict"] == "broken"


def test_a_folder_that_others_may_read_is_named(shell: Shell) -> None:
    folder = shell.folder / ".warpfold"
    folder.mkdir()
    folder.chmod(0o755)
    finding = findings(shell)["data folder"]
    assert (finding["verdict"], finding["advice"]) == ("warning", "chmod go-rw .warpfold")
