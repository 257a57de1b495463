"""The proxies in front of the api let pass what the api needs: large bodies, events as they happen, held answers, and
the address of the client."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from warpfold.app.__main__ import _IDLE_S
from warpfold.app.http.headers import LONGEST_WAIT_S
from warpfold.app.jobs.events import KEEP_ALIVE_S

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = DEPLOY / "nginx.conf"
_OTHERS = ("fastcgi", "uwsgi", "scgi")


@pytest.fixture
def settings() -> dict[str, str]:
    """The directives of the server with TLS. Those of headers and addresses have their first word in the name."""
    text = re.sub(r"^\s*#.*$", "", NGINX.read_text(), flags=re.MULTILINE)
    server = text[text.rindex("server {") :]
    lines = [line.strip().removesuffix(";") for line in server.splitlines() if line.strip().endswith(";")]
    return {" ".join(words): value for *words, value in (line.split() for line in lines)}


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_nginx_leaves_the_limits_of_bodies_to_the_api(settings: dict[str, str]) -> None:
    assert settings["client_max_body_size"] == "0"
    assert settings["proxy_request_buffering"] == "off"


def test_nginx_holds_back_neither_events_nor_answers_that_are_waited_for(settings: dict[str, str]) -> None:
    assert settings["proxy_buffering"] == "off"
    assert seconds(settings["proxy_read_timeout"]) > max(LONGEST_WAIT_S, KEEP_ALIVE_S)
    assert seconds(settings["proxy_read_timeout"]) <= _IDLE_S
    assert "text/event-stream" not in NGINX.read_text()


def test_nginx_tells_the_api_of_the_client_and_believes_no_client(settings: dict[str, str]) -> None:
    assert settings["proxy_set_header X-Forwarded-For"] == "$remote_addr"  # a client may send that header, too
    assert settings["proxy_set_header X-Forwarded-Proto"] == "$scheme"
    assert settings["proxy_set_header Host"] == "$host"
    assert (settings["proxy_http_version"], settings["proxy_set_header Connection"]) == ("1.1", '""')


def test_caddy_sends_events_as_they_happen() -> None:
    assert re.search(r"reverse_proxy api:8080 \{[^}]*flush_interval -1", (DEPLOY / "Caddyfile").read_text())


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed; Debian's package has it")
def test_nginx_takes_the_file(tmp_path: Path) -> None:
    certificate = [tmp_path / "fullchain.pem", tmp_path / "privkey.pem"]
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=gpu.example.org")
    subprocess.run([*command, "-out", certificate[0], "-keyout", certificate[1]], check=True, capture_output=True)
    text = NGINX.read_text().replace("/etc/letsencrypt/live/gpu.example.org", str(tmp_path))
    included = tmp_path / "warpfold.conf"
    included.write_text(re.sub(r"(listen \S*?)(80|443)\b", r"\g<1>18\2", text))  # ports that are not root's
    folders = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", *_OTHERS))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid; events {{}} http {{ access_log off; {folders} include {included}; }}")
    done = subprocess.run(
        ["nginx", "-t", "-c", whole, "-p", tmp_path, "-e", "stderr"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
