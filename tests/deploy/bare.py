"""`python -m tests.deploy.bare`: everything that the images run, run without an engine.

For each target a new virtual environment gets what the Dockerfile's steps of pip install, and no more. Then every
command of docker-compose.yml runs in the environment of its image, with secrets from files, on real servers; their
health checks are asked as Docker would, and a job goes all the way. It takes minutes and downloads a gigabyte, so it is
not among the tests: `make try-images`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import ExitStack
from pathlib import Path

import httpx
import yaml

from tests.servers import own_servers

ROOT = Path(__file__).parents[2]
IMAGES = {"api": "api-build", "worker": "worker-build"}
SUM = {"kind": "reduce", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}}


def environment_of(target: str, folder: Path) -> Path:
    """A virtual environment made by the steps of the Dockerfile; the folder of its programs."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    stage = re.split(rf"^FROM .* AS {IMAGES[target]}$", text, flags=re.MULTILINE)[1].split("\nFROM ")[0]
    lock = re.search(r"^ARG LOCK=(.+)$", stage, re.MULTILINE)
    shutil.copy(ROOT / (lock[1] if lock else "requirements.lock"), folder / "requirements.lock")
    for copied in re.findall(r"^COPY ([^-$].*)$", stage, re.MULTILINE):
        for name in copied.split()[:-1]:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name)
    programs = folder / "venv" / "bin"
    venv.create(folder / "venv", with_pip=True)
    for line in re.findall(r"^RUN (.*pip .*)$", stage, re.MULTILINE):
        subprocess.run(["sh", "-ec", line.replace("/opt/warpfold/bin", str(programs))], cwd=folder, check=True)
    size = sum(path.stat().st_size for path in (folder / "venv").rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{target}: {size / 2**20:.0f} MiB of packages", flush=True)
    return programs


def main() -> int:
    """Run it all; an AssertionError says what did not work."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    with ExitStack() as last:
        servers = last.enter_context(own_servers())
        folder = Path(last.enter_context(tempfile.TemporaryDirectory(prefix="warpfold-bare-")))
        secret = folder / "database_url"
        secret.write_text(servers.database_url)
        variables = {
            "PATH": os.environ["PATH"],
            "WARPFOLD_DATABASE_URL_FILE": str(secret),
            "WARPFOLD_REDIS_URL": servers.redis_url,
            "WARPFOLD_DATA_DIR": str(folder / "state"),
            "NUMBA_CACHE_DIR": str(folder / "numba"),
        }
        programs = {}
        for target in IMAGES:
            (folder / target).mkdir()
            programs[target] = environment_of(target, folder / target)

        def command(target: str, *words: str) -> list[str]:
            return [str(programs[target] / "warpfold"), *words]

        def run(target: str, *words: str) -> str:
            done = subprocess.run(
                command(target, *words), cwd=folder, env=variables, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            print(f"{target}: warpfold {' '.join(words)}", flush=True)
            return done.stdout.strip()

        def start(name: str, target: str) -> None:
            words = [str(word) for word in compose[name]["command"]]
            words = ["127.0.0.1" if word == "0.0.0.0" else word for word in words]  # noqa: S104 (not here)
            process = subprocess.Popen(command(target, *words), cwd=folder, env=variables)
            last.callback(process.wait, 15)
            last.callback(process.terminate)
            print(f"{target}: warpfold {' '.join(words)} …", flush=True)

        run("api", *compose["migrate"]["command"])
        token = run("api", "token", "create", "ada", "--role", "admin")
        start("api", "api")
        start("dispatcher", "api")
        start("worker-cpu", "worker")
        with httpx.Client(base_url="http://127.0.0.1:8080", headers={"Authorization": f"Bearer {token}"}) as http:
            give_up = time.monotonic() + 180
            while not _ready(http):
                assert time.monotonic() < give_up, "not ready"
                time.sleep(0.2)
            job = http.post("/v1/jobs", json=SUM, headers={"Prefer": "wait=30"}, timeout=60).json()
        assert job["status"] == "succeeded", json.dumps(job, indent=1)
        assert job["result"]["value"] == 1.0
        for target, part in (("api", "api"), ("api", "dispatcher"), ("worker", "worker")):
            run(target, "alive", part)
    print("everything that the images run has run")
    return 0


def _ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    sys.exit(main())
