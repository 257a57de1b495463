"""The files of the images: what can be known of them without building or starting. `tests.support.images` does both."""

import os
import re
import shutil
import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.images import build
from warpfold.__main__ import COMMANDS
from warpfold.app.config import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = ("migrate", "api", "dispatcher", "worker-cpu", "worker-gpu0", "worker-gpu1")


def service(name: str) -> dict[str, Any]:
    definition: dict[str, Any] = COMPOSE["services"][name]
    return definition


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


def test_the_libraries_of_a_worker_keep_their_caches_in_its_volume() -> None:
    """Its root is read only: CuPy, which would make a folder in the home, ended every worker of a GPU at its start."""
    worker = (ROOT / "Dockerfile").read_text().split(" AS worker\n")[1]
    for variable in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH"):
        assert f"{variable}=/var/lib/warpfold/cache/" in worker


def test_what_is_copied_into_the_images_is_there_and_is_not_ignored() -> None:
    lines = re.findall(r"^COPY (?!--from|\$)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    wanted = {name for line in lines for name in line.split()}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in wanted)
    assert wanted - kept - {"requirements.lock"} == set()
    assert {"LICENSE", "app", "client", "contract", "engines", "kernels", "migrations", "src", "worker"} <= wanted


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_known_commands_with_settings_that_exist(name: str) -> None:
    definition = service(name)
    assert definition["command"][0] in COMMANDS
    assert definition["user"] == "10001:10001"
    settings = {f"WARPFOLD_{field.upper()}" for field in Settings.model_fields}
    assert {variable.removesuffix("_FILE") for variable in definition["environment"]} <= settings
    check = definition.get("healthcheck", {}).get("test", ["CMD", "warpfold", "alive"])
    assert check[1:3] == ["warpfold", "alive"]


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_container_is_confined_and_has_its_share(name: str) -> None:
    definition = service(name)
    assert definition["read_only"] is True
    assert definition["cap_drop"] == ["ALL"]
    assert definition["security_opt"] == ["no-new-privileges:true"]
    assert any(place.startswith("/tmp:size=") for place in definition["tmpfs"])  # noqa: S108 (of the container)
    assert definition["pids_limit"] <= 1024
    assert re.fullmatch(r"\d+[gm]|\$\{WARPFOLD_[A-Z]+_MEMORY:-\d+g\}", definition["mem_limit"])
    assert definition["logging"]["options"]["max-size"] == "10m"
    if name == "caddy":  # it takes ports 80 and 443, as the root of its container
        assert definition["cap_add"] == ["NET_BIND_SERVICE"]
    else:
        assert "cap_add" not in definition
        assert int(definition["user"].split(":")[0]) > 0


@pytest.mark.parametrize("name", OURS)
def test_every_container_has_the_address_of_its_own_role_and_no_other_secret(name: str) -> None:
    definition = service(name)
    role = name.split("-", maxsplit=1)[0]
    assert definition["environment"]["WARPFOLD_DATABASE_URL_FILE"] == f"/run/secrets/{role}_database_url"
    redis = [] if name == "migrate" else ["redis_url"]
    assert definition["secrets"] == [f"{role}_database_url", *redis]
    assert ("WARPFOLD_REDIS_URL_FILE" in definition["environment"]) == bool(redis)
    assert not {"WARPFOLD_DATABASE_URL", "WARPFOLD_REDIS_URL"} & set(definition["environment"])


def test_only_the_proxy_is_believed_for_whom_it_asks() -> None:
    words = service("api")["command"]
    believed = words[words.index("--forwarded-allow-ips") + 1]
    address = service("caddy")["networks"]["front"]["ipv4_address"]
    assert believed == f"${{WARPFOLD_PROXY:-{address}}}"
    (front,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    assert ip_address(address) in ip_network(front["subnet"])
    members = [name for name, definition in COMPOSE["services"].items() if "front" in definition["networks"]]
    assert sorted(members) == ["api", "caddy"]


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
        definition = service(name)
        (device,) = definition["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
        assert definition["profiles"] == ["gpu"]
        assert definition["command"] == ["worker", "--slot", "cuda:0"]  # in its container a GPU is alone
        devices += device["device_ids"]
        hosts.append(definition["hostname"])
        states.append(next(volume for volume in definition["volumes"] if volume.endswith(":/var/lib/warpfold")))
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
    assert not {"postgres", "redis"} & {network for network in COMPOSE["networks"] if network != "inside"}


def test_redis_asks_for_a_password_and_its_health_check_has_it() -> None:
    definition = service("redis")
    assert definition["command"][-2:] == ["--aclfile", "/run/secrets/redis.acl"]
    assert definition["secrets"] == ["redis.acl", "redis_password"]
    assert "/run/secrets/redis_password" in definition["healthcheck"]["test"][1]


def test_every_volume_network_and_secret_is_declared() -> None:
    for name, definition in COMPOSE["services"].items():
        for volume in definition.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists(), (name, source)
            assert source.startswith("./") or source in COMPOSE["volumes"], (name, source)
        assert set(definition.get("networks", ())) <= set(COMPOSE["networks"])
        assert set(definition.get("secrets", ())) <= set(COMPOSE["secrets"])
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./deploy/secrets/")
    assert "deploy/secrets/" in ignored


def declared() -> dict[str, str]:
    """The images of others, by the names of deploy/images.env."""
    lines = (ROOT / "deploy" / "images.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_image_of_others_is_asked_for_by_its_name_in_one_file() -> None:
    compose, dockerfile = (ROOT / "docker-compose.yml").read_text(), (ROOT / "Dockerfile").read_text()
    named = dict(re.findall(r"\$\{(\w+_IMAGE):-([^}]+)\}", compose))
    assert named == declared()
    assert set(re.findall(r"^ARG (\w+_IMAGE=.+)$", dockerfile, re.MULTILINE)) == {
        f"{name}={declared()[name]}" for name in ("PYTHON_IMAGE", "CUDA_IMAGE")
    }
    others = [definition["image"] for definition in COMPOSE["services"].values() if "build" not in definition]
    assert all(re.fullmatch(r"\$\{\w+_IMAGE:-.+\}", image) for image in others)


@pytest.mark.parametrize("why", ["no root", "no buildah", "not asked for"])
def test_the_images_are_built_where_that_is_asked_for(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building takes a quarter of an hour and a gigabyte, so `make try-images` does it, and no ordinary run of the
    tests."""
    if why == "no root":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert build.missing() == "building images needs root"
    elif why == "no buildah":
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setenv("PATH", "/nowhere")
        assert "buildah" in str(build.missing())
    elif "WARPFOLD_TRY_IMAGES" not in os.environ:
        pytest.skip("set WARPFOLD_TRY_IMAGES=1, or run `make try-images`: it takes a quarter of an hour")
    elif reason := build.missing():
        pytest.skip(reason)
    else:
        subprocess.run([sys.executable, "-m", "tests.support.images"], check=True, cwd=ROOT)
