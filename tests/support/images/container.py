"""One service of docker-compose.yml, started in a chroot of its image as the file says.

As the file has it: command, entry point, user, variables, secrets, volumes, hostname, a root that is read only, the
tmpfs, no capabilities, no new privileges, the number of descriptors; memory and process limits where control groups can
be written. All services share one network of this machine's own, without the names and the separations of the file's
networks.
"""

import json
import os
import re
import resource
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

_SHARED = "/dev/shm"  # noqa: S108 (of the container)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def substituted(value: str) -> str:
    """`${NAME:-default}` as Compose reads it where NAME is not set, and `$$` as a dollar."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value).replace("$$", "$")


@dataclass(frozen=True)
class Image:
    """A built image: its files, and what it says of itself."""

    root: Path
    config: Mapping[str, Any]

    @classmethod
    def of(cls, root: Path, inspected: str) -> "Image":
        return cls(root, json.loads(inspected)["Docker"]["config"])

    @property
    def health_check(self) -> list[str]:
        """The command of HEALTHCHECK."""
        test: list[str] = self.config["Healthcheck"]["Test"]
        return test[1:]


@dataclass
class Container:
    """A service as Compose would run it. `folder` holds its volumes, `secrets` the files of deploy/secrets.sh."""

    name: str
    service: Mapping[str, Any]
    image: Image
    folder: Path
    secrets: Path
    log: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the image's entry point to its end, as `docker compose run --rm SERVICE words` does."""
        return self.execute([*self.image.config["Entrypoint"], *words])

    def execute(self, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a program in a container like this one, as a health check is."""
        return subprocess.run(
            self._command(words), capture_output=True, text=True, check=False, timeout=120, env=self._outer()
        )

    def start(self) -> None:
        """Start the service's command."""
        words = [*self.image.config["Entrypoint"], *(substituted(str(word)) for word in self.service["command"])]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command(words), stdout=log, stderr=log, env=self._outer())

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_healthy(self) -> bool:
        """What the health check of the file says, or else the image's."""
        check = self.service.get("healthcheck")
        return self.execute(self.image.health_check if check is None else check["test"][1:]).returncode == 0

    @property
    def descriptors(self) -> int:
        """How many files may be open: as many as the file says, or fewer if this machine allows no more."""
        return min(int(self.service["ulimits"]["nofile"]["hard"]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])

    def stop(self) -> int:
        """SIGTERM to the service, and SIGKILL after 15 s; its exit code."""
        assert self._process is not None
        for child in psutil.Process(self._process.pid).children() if self.running else ():
            child.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _outer(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"]}

    def _command(self, words: Sequence[str]) -> list[str]:
        script = "\n".join(
            ["set -eu", *self._mounts(), f"hostname {shlex.quote(self._hostname())}", self._enter(words)]
        )
        return ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "sh", "-c", script]

    def _hostname(self) -> str:
        return str(self.service.get("hostname", self.name))

    def _mounts(self) -> list[str]:
        root = shlex.quote(str(self.image.root))
        lines = [f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}", f"mount -t proc proc {root}/proc"]
        assert self.service["read_only"] is True
        lines += [f"mount -t tmpfs -o mode=755 dev {root}/dev", f"ln -s /proc/self/fd {root}/dev/fd"]
        for device in _DEVICES:
            lines += [f"touch {root}/dev/{device}", f"mount --bind /dev/{device} {root}/dev/{device}"]
        lines += [f"mkdir {root}{_SHARED}", f"mount -t tmpfs -o mode=1777,size=64m shm {root}{_SHARED}"]
        for place in self.service.get("tmpfs", ()):
            path, _, options = str(place).partition(":")
            lines.append(f"mount -t tmpfs -o {shlex.quote(options or 'mode=1777')} tmpfs {root}{path}")
        lines += [f"mount -t tmpfs -o mode=755 run {root}/run", f"mkdir {root}/run/secrets"]
        for secret in self.service.get("secrets", ()):
            inside = f"{root}/run/secrets/{secret}"
            lines += [f"touch {inside}", f"mount --bind {shlex.quote(str(self.secrets / secret))} {inside}"]
        for volume in self.service.get("volumes", ()):
            source, inside, *mode = str(volume).split(":")
            place = shlex.quote(str(self._volume(source)))
            lines.append(f"mount --bind {place} {root}{inside}")
            if mode == ["ro"]:
                lines.append(f"mount -o remount,bind,ro {root}{inside}")
        return lines

    def _volume(self, name: str) -> Path:
        """The folder of a named volume. A new one belongs to whom the image's folder belongs to, as with Docker."""
        place = self.folder / name
        if not place.exists():
            place.mkdir()
            os.chown(place, 10001, 10001)
        return place

    def _enter(self, words: Sequence[str]) -> str:
        user, _, group = str(self.service["user"]).partition(":")
        assert self.service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in self.service["security_opt"]
        variables = dict(variable.split("=", 1) for variable in self.image.config["Env"])
        variables |= {name: substituted(str(value)) for name, value in self.service.get("environment", {}).items()}
        inner = [
            *("chroot", str(self.image.root), "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"),
            *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"),
            *("env", "--ignore-environment", f"--chdir={self.image.config['WorkingDir']}"),
            *(f"{name}={value}" for name, value in variables.items() if value or name.startswith("WARPFOLD")),
            *words,
        ]
        return f"ulimit -n {self.descriptors}\nexec {shlex.join(inner)}"
