"""`python -m tests.support.images`: build both images, start everything, run jobs, ask every health check. Needs root.

It takes minutes and a gigabyte of downloads, and up to 8 GiB of disk below TMPDIR, which are free again at its end.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import yaml

from tests.support.database_roles import make_secrets
from tests.support.images.build import ROOT, builder, make_base, missing
from tests.support.images.container import Container, Image
from tests.support.images.servers import postgres, redis

TARGETS = ("api", "worker")
PROXY = "172.31.255.2"
SUM = {"kind": "reduce", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}}
BENCHMARK = {
    "kind": "benchmark",
    "ops": ["sum"],
    "strategies": ["exact"],
    "dtypes": ["float32"],
    "sizes": [1000],
    "backend": "cpu",
}


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - began:.0f} s")


def size_of(folder: Path) -> str:
    done = subprocess.run(["du", "-sm", "--one-file-system", folder], capture_output=True, text=True, check=False)
    return f"{done.stdout.split()[0]} MiB"


def build_and_run(work: Path) -> None:
    """The whole of it, below `work`."""
    with builder(work) as build:
        say(f"buildah, storage driver {build.driver}")
        with timed("a base by debootstrap"):
            make_base(work / "base")
        build.import_base(work / "base")
        subprocess.run(["rm", "-rf", "--one-file-system", work / "base"], check=True)
        roots = {}
        for target in TARGETS:
            with timed(f"target {target} built"):
                build.build(target)
            roots[target] = build.mount(target)
            say(f"target {target}: {size_of(roots[target])}")
            inspected = work / f"{target}.json"
            inspected.write_text(build("inspect", "--type", "image", f"localhost/warpfold-{target}"))
        # From here on in a network of its own: nothing else listens there, and nobody outside can reach it.
        words = [sys.executable, "-m", "tests.support.images", "--run", str(work), *map(str, roots.values())]
        subprocess.run(["unshare", "--net", *words], check=True, cwd=ROOT)


def run(work: Path, *roots: Path) -> None:
    """Start the services on images that were built, and use them."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{PROXY}/29", "dev", "lo"], check=True)
    images = {
        target: Image.of(root, (work / f"{target}.json").read_text())
        for target, root in zip(TARGETS, roots, strict=True)
    }
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    secrets, volumes = work / "secrets", work / "volumes"
    volumes.mkdir()
    make_secrets(secrets, POSTGRES="127.0.0.1:5432", REDIS="127.0.0.1:6379")

    def container(name: str) -> Container:
        target = services[name]["build"]["target"]
        return Container(name, services[name], images[target], volumes, secrets, work / f"{name}.log")

    with ExitStack() as last:
        for name, start in (("postgres", postgres), ("redis", redis)):
            last.enter_context(start(services[name], secrets, work / name))
            say(f"{name}: started as the file says, healthy")
        done = container("migrate").run(*services["migrate"]["command"])
        assert done.returncode == 0, done.stdout + done.stderr
        say(f"migrate: {done.stdout.strip()}")
        api, dispatcher, worker = (container(name) for name in ("api", "dispatcher", "worker-cpu"))
        done = api.run("token", "create", "ada", "--role", "admin")
        assert done.returncode == 0, done.stderr
        token = done.stdout.strip()
        _confined(api)
        for started in (api, dispatcher, worker):
            started.start()
            last.callback(started.stop)
        with httpx.Client(
            base_url="http://127.0.0.1:8080", headers={"Authorization": f"Bearer {token}"}, timeout=90
        ) as http:
            with timed("ready"):
                _until(lambda: _ready(http), [api, dispatcher, worker])
            _jobs(http)
            _proxy(token)
        for started in (api, dispatcher, worker):
            _until(started.is_healthy, [started])
            check = started.service.get("healthcheck", {"test": ["the image's own"]})
            say(f"{started.name}: healthy, by {' '.join(map(str, check['test']))}")
        codes = {container.name: container.stop() for container in (worker, dispatcher, api)}
        say(f"stopped with SIGTERM: {codes}")
        assert set(codes.values()) == {0}
        refused = [line for line in (work / "postgres" / "log").read_text().splitlines() if "permission denied" in line]
        assert refused == [], refused
        gpu = container("worker-gpu0")
        done = gpu.run(*services["worker-gpu0"]["command"])
        errors = [line for line in (done.stdout + done.stderr).splitlines() if '"error"' in line]
        assert done.returncode != 0
        assert "Read-only file system" not in "".join(errors), errors
        say(f"worker-gpu0: not started, for want of a GPU; it says: {errors[-1][-160:]}")
    say("not tried: caddy (its image needs a registry), the file's networks, limits of memory and of processes")


def _confined(api: Container) -> None:
    """The container can do no more than the file allows."""
    for place in ("/opt/warpfold/x", "/x", "/etc/x"):
        done = api.execute(["touch", place])
        assert "Read-only file system" in done.stderr, done.stderr
    status = api.execute(["cat", "/proc/self/status"]).stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split()[0] == "10001"
    assert {facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert api.execute(["cat", "/run/secrets/postgres_password"]).returncode != 0
    assert api.execute(["sh", "-c", "ulimit -n"]).stdout.strip() == str(api.descriptors)
    say("api: root read only, no capabilities, no new privileges, no secret but its own")


def _jobs(http: httpx.Client) -> None:
    job = http.post("/v1/jobs", json=SUM, headers={"Prefer": "wait=60"}).json()
    assert (job["status"], job["result"]["value"]) == ("succeeded", 1.0), job
    say("a job: the exact sum of three values, 1.0")
    file = Path(tempfile.mkdtemp()) / "array.npy"
    np.save(file, np.array([1e16, 1.0, -1e16]))
    dataset = http.post("/v1/datasets", content=file.read_bytes()).json()
    spec = {"kind": "reduce", "source": {"type": "dataset", "id": dataset["id"]}}
    job = http.post("/v1/jobs", json=spec, headers={"Prefer": "wait=60"}).json()
    assert (job["status"], job["result"]["value"]) == ("succeeded", 1.0), job
    say("a job: an uploaded array, which the worker reads from the volume that the api wrote")
    job = http.post("/v1/jobs", json=BENCHMARK, headers={"Prefer": "wait=60"}).json()
    assert job["status"] == "succeeded", job
    chart = http.get(f"/v1/reports/{job['id']}", headers={"Accept": "text/html"})
    assert chart.status_code == 200, chart.text
    say("a benchmark, and its report with charts")


def _proxy(token: str) -> None:
    """Only the address of the proxy is believed when it says that the browser came by TLS."""
    secure = {}
    for address in ("127.0.0.1", PROXY):
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url="http://127.0.0.1:8080") as browser:
            headers = {"X-Forwarded-Proto": "https", "Origin": "https://127.0.0.1:8080", "Host": "127.0.0.1:8080"}
            answer = browser.post("/sign-in", data={"token": token}, headers=headers)
        secure[address] = "secure" in answer.headers.get("set-cookie", "").lower()
    assert secure == {"127.0.0.1": False, PROXY: True}, secure
    say("api: believes X-Forwarded-Proto from Caddy's address alone")


def _ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def _until(true: Callable[[], bool], containers: list[Container], within_s: float = 300.0) -> None:
    give_up = time.monotonic() + within_s
    while not true():
        for container in containers:
            assert container.running, f"{container.name} ended: {container.log.read_text()[-2000:]}"
        assert time.monotonic() < give_up, "\n".join(container.log.read_text()[-2000:] for container in containers)
        time.sleep(0.2)


def main() -> int:
    """0 once everything has run; an AssertionError says what did not."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.images", description=__doc__)
    parser.add_argument("--run", nargs=3, type=Path, metavar=("WORK", "API", "WORKER"), help=argparse.SUPPRESS)
    arguments: Any = parser.parse_args()
    if arguments.run:
        run(*arguments.run)
        return 0
    if why := missing():
        print(f"The images cannot be built here: {why}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="warpfold-images-") as folder:
        Path(folder).chmod(0o711)
        build_and_run(Path(folder))
    say("both images were built, and everything that they run has run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
