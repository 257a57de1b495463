"""The units of systemd: known to systemd, confined, and each with its own secrets."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from warpfold.__main__ import COMMANDS
from warpfold.app.config import Settings

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
MOST_EXPOSED = 2.5
"""Of the 10 of `systemd-analyze security`."""

systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")


def settings_of(name: str) -> dict[str, list[str]]:
    """The [Service] section of a unit; a name may stand there several times."""
    section = (UNITS / name).read_text().split("[Service]\n")[1].split("\n[")[0]
    settings: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings.setdefault(key, []).append(value)
    return settings


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """The units with programs that are there, the template as an instance of it."""
    made = []
    for unit in sorted(UNITS.iterdir()):
        if unit.suffix == ".example":
            continue
        copy = tmp_path / unit.name.replace("@", "@cpu")
        copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE))
        made.append(copy)
    return made


@systemd
def test_the_units_are_what_systemd_understands(copies: list[Path]) -> None:
    done = subprocess.run(["systemd-analyze", "verify", *copies], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "warpfold" in line] == []


@systemd
def test_systemd_finds_no_unit_exposed(copies: list[Path]) -> None:
    for unit in copies:
        if unit.suffix != ".service":
            continue
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False
        )
        if "--offline" in done.stderr:
            pytest.skip("systemd is older than 250 here")
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert exposure is not None, done.stderr
        assert float(exposure[1]) <= MOST_EXPOSED, done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_every_unit_is_confined_and_has_its_share(name: str) -> None:
    unit = settings_of(name)
    assert unit["CapabilityBoundingSet"] == unit["AmbientCapabilities"] == [""]
    assert unit["SystemCallFilter"][0] == "@system-service"
    assert unit["SystemCallFilter"][1].startswith("~@privileged")
    for right in ("NoNewPrivileges", "RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality", "PrivateTmp"):
        assert unit[right] == ["yes"]
    assert unit["ProtectSystem"] == ["strict"]
    assert int(unit["LimitNOFILE"][0]) >= 65536
    assert unit["MemoryMax"]
    assert int(unit["TasksMax"][0]) >= 64
    assert "MemoryDenyWriteExecute" not in unit  # Numba and the charts' engine compile at run time


def test_a_worker_still_sees_its_gpus_and_outlives_its_child() -> None:
    unit = settings_of("warpfold-worker@.service")
    # Each of these allows some devices, and thereby no other.
    assert not {"PrivateDevices", "ProtectClock", "DevicePolicy", "DeviceAllow"} & set(unit)
    assert unit["OOMPolicy"] == ["continue"]
    assert "AF_NETLINK" in unit["RestrictAddressFamilies"][0]


@pytest.mark.parametrize("name", SERVICES)
def test_every_unit_has_the_address_of_its_own_role(name: str) -> None:
    unit = settings_of(name)
    role = {"warpfold-worker@.service": "worker", "warpfold-backup.service": "migrate"}.get(
        name, name.removeprefix("warpfold-").removesuffix(".service")
    )
    assert unit["LoadCredential"][0] == f"database_url:/etc/warpfold/secrets/{role}_database_url"
    assert "WARPFOLD_DATABASE_URL_FILE=%d/database_url" in unit["Environment"]
    redis = "redis_url:/etc/warpfold/secrets/redis_url" in unit["LoadCredential"]
    assert redis == (role != "migrate")


def test_only_the_proxy_of_this_machine_is_believed() -> None:
    (start,) = settings_of("warpfold-api.service")["ExecStart"]
    assert start.endswith("--host 127.0.0.1 --port 8080 --forwarded-allow-ips 127.0.0.1")


def test_the_units_run_known_commands() -> None:
    for name in SERVICES:
        for words in settings_of(name)["ExecStart"]:
            if words.startswith("/opt/warpfold/bin/warpfold "):
                assert words.split()[1] in COMMANDS, name
    settings = {f"WARPFOLD_{field.upper()}" for field in Settings.model_fields}
    example = (UNITS / "environment.example").read_text()
    assert set(re.findall(r"^(\w+)=", example, re.MULTILINE)) <= settings
    assert "PASSWORD" not in example
