"""The files of the images and of the units of systemd: what can be known of them without building or starting."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from warpfold.app.config import Settings
from warpfold.client.cli.server import COMMANDS

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = ("migrate", "api", "dispatcher", "worker-cpu", "worker-gpu0", "worker-gpu1")


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"][name]
    return found


def test_the_dockerfile_is_clean() -> None:
    hadolint = shutil.which("hadolint") or ROOT / ".venv" / "bin" / "hadolint"
    if not Path(hadolint).exists():
        pytest.skip("hadolint has a wheel for Linux on x86_64 only")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_target_ends_as_an_ordinary_user_with_a_health_check() -> None:
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    final = {stage.split()[2]: stage for stage in stages if stage.split()[2] in ("api", "worker")}
    assert set(final) == {"api", "worker"}
    for stage in final.values():
        assert re.findall(r"^USER (.+)$", stage, re.MULTILINE) == ["10001"]
        assert "HEALTHCHECK" in stage
        assert 'ENTRYPOINT ["warpfold"]' in stage
        assert "pip install" not in stage
    for stage in stages:
        for install in re.findall(r"pip install (.*)", stage):
            assert "--require-hashes" in install or "--no-deps" in install


def test_what_is_copied_into_the_images_is_there_and_is_not_ignored() -> None:
    wanted = set(re.findall(r"^COPY (?!--from|\$)(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in wanted)
    assert wanted - kept - {"requirements.lock"} == set()
    assert {"app", "client", "kernels", "migrations", "src", "worker"} <= wanted


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_known_commands_with_few_rights(name: str) -> None:
    one = service(name)
    assert one["command"][0] in COMMANDS
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["secrets"] == ["database_url"]
    settings = {f"WARPFOLD_{field.upper()}" for field in Settings.model_fields}
    assert {variable.removesuffix("_FILE") for variable in one["environment"]} <= settings
    check = one.get("healthcheck", {}).get("test", ["CMD", "warpfold", "alive"])
    assert check[1:3] == ["warpfold", "alive"]


def test_they_start_in_the_order_in_which_they_need_each_other() -> None:
    assert service("migrate")["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS[1:]:
        assert service(name)["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    assert service("migrate")["restart"] == "no"


def test_every_gpu_has_one_worker_of_its_own() -> None:
    devices, hosts, states = [], [], []
    for name in ("worker-gpu0", "worker-gpu1"):
        one = service(name)
        (device,) = one["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
        assert one["profiles"] == ["gpu"]
        assert one["command"] == ["worker", "--slot", "cuda:0"]  # in its container a GPU is alone
        devices += device["device_ids"]
        hosts.append(one["hostname"])
        states.append(next(volume for volume in one["volumes"] if volume.endswith(":/var/lib/warpfold")))
    assert devices == ["0", "1"]
    assert len(set(hosts)) == len(set(states)) == 2


def test_redis_drops_nothing_and_no_server_is_reachable_from_elsewhere() -> None:
    command = " ".join(service("redis")["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis"):
        assert service(name)["networks"] == ["inside"]
        assert "ports" not in service(name)
    assert service("api")["ports"] == ["127.0.0.1:${WARPFOLD_PORT:-8080}:8080"]
    assert service("postgres")["image"] == "postgres:18"


def test_every_volume_network_and_secret_is_declared() -> None:
    for name, one in COMPOSE["services"].items():
        for volume in one.get("volumes", ()):
            source = volume.split(":")[0]
            assert source.startswith("./") or source in COMPOSE["volumes"], (name, source)
        assert set(one.get("networks", ())) <= set(COMPOSE["networks"])
        assert set(one.get("secrets", ())) <= set(COMPOSE["secrets"])
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./deploy/secrets/")
    assert "deploy/secrets/" in ignored


def test_the_script_makes_the_secrets_once(tmp_path: Path) -> None:
    make = [str(ROOT / "deploy" / "secrets.sh"), str(tmp_path / "secrets")]
    subprocess.run(make, check=True)
    password = (tmp_path / "secrets" / "postgres_password").read_text()
    assert re.fullmatch(r"[0-9a-f]{48}", password)
    url = (tmp_path / "secrets" / "database_url").read_text()
    assert url == f"postgresql://warpfold:{password}@postgres:5432/warpfold"
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    again = subprocess.run(make, check=False, capture_output=True, text=True)
    assert (again.returncode, "has a password already" in again.stderr) == (1, True)
    assert (tmp_path / "secrets" / "postgres_password").read_text() == password


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_the_units_are_what_systemd_understands(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    (tmp_path / "warpfold-worker@.service").rename(tmp_path / "warpfold-worker@cpu.service")
    units = [str(path) for path in sorted(tmp_path.iterdir()) if path.suffix != ".example"]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "warpfold" in line] == []


def test_the_units_run_known_commands() -> None:
    for unit in UNITS.glob("*.service"):
        for words in re.findall(r"^ExecStart=/opt/warpfold/bin/warpfold (.*)$", unit.read_text(), re.MULTILINE):
            assert words.split()[0] in COMMANDS, unit.name
    settings = {f"WARPFOLD_{field.upper()}" for field in Settings.model_fields}
    example = (UNITS / "environment.example").read_text()
    assert set(re.findall(r"^(\w+)=", example, re.MULTILINE)) <= settings
