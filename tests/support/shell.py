"""The command line as a person at a shell uses it, in a folder of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from unittest import mock

from typer.testing import CliRunner

from tests.support.service import Service
from warpfold.client.cli import build

_OURS = ("WARPFOLD", "XDG")

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_CHANGING = (
    (_UUID, "ID"),
    (re.compile(r"(?m)^[0-9a-f]{8}\b"), "ID"),  # in short, as lists begin
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?"), "TIME"),
    (re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b[\d.]+ ms\b"), "MS"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "URL"),
)


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def transcript(self) -> str:
        """All of it, with what differs from run to run (ids, times, addresses, this machine) replaced by its name."""
        text = self.out + self.err + (f"[exit code {self.code}]\n" if self.code else "")
        return plain(text)


def plain(text: str) -> str:
    """`text` without what differs from run to run; runs of spaces, which are as long as that, become one."""
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    return re.sub(r"(?<=\S) {2,}(?=\S)", "  ", text)


@dataclass
class Shell:
    """A folder, and an environment in which `warpfold` finds the service."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, service: Service, folder: Path) -> "Shell":
        return cls(folder, {"WARPFOLD_URL": service.url, "WARPFOLD_TOKEN": service.token})

    def run(self, *words: str, stdin: str = "") -> Said:
        """`warpfold words…`, in this process, which has everything imported."""
        with self._inside():
            done = CliRunner().invoke(build(), words, input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    def call(self, *words: str) -> None:
        """The same with the current standard output of this process."""
        columns = os.environ["COLUMNS"]
        with self._inside(), mock.patch.dict(os.environ, {"COLUMNS": columns}):
            build()(words, standalone_mode=False)

    def spawn(self, *words: str) -> Said:
        """The same in a process of its own."""
        process = self.start(*words)
        out, err = process.communicate()
        return Said(process.returncode, out, err)

    def spawn_with(self, stdin: TextIO, *words: str) -> "subprocess.CompletedProcess[str]":
        """The same with a standard input of its own."""
        process = self.start(*words, stdin=stdin)
        out, err = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def start(self, *words: str, stdin: TextIO | None = None) -> "subprocess.Popen[str]":
        """The same without waiting for its end."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        code = "import sys; sys.argv[0] = 'warpfold'; from warpfold.client.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**kept, **self._variables()},
        )

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """This process in the folder and in the environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        with chdir(self.folder), mock.patch.dict(os.environ, {**kept, **self._variables()}, clear=True):
            yield

    def _variables(self) -> dict[str, str]:
        return {
            "COLUMNS": "120",
            "TERM": "dumb",
            "XDG_CONFIG_HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.folder),
            **self.environment,
        }
