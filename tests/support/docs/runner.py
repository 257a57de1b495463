"""Runs the examples of a page in a folder of its own, at a service."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.docs.commands import ASK
from tests.support.docs.pages import Block, blocks, commands, fits
from tests.support.service import Service

_MARK = "\x1e"  # stands between the outputs of two commands
_ADDRESS = "http://127.0.0.1:8080"  # of the pages' service; the tests' has another port


@dataclass(frozen=True)
class Runner:
    """A folder, and an environment in which `warpfold` is a command and the service is known."""

    folder: Path
    environment: dict[str, str]

    @classmethod
    def at(cls, service: Service, commands: Path, folder: Path) -> "Runner":
        """`commands` is the address of a command server."""
        programs = folder / ".bin"
        programs.mkdir()
        for name, arguments in (("warpfold", f"-I -S {ASK} {commands}"), ("python", "")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
            program.chmod(0o755)
        notes = folder / ".warpfold"  # as `warpfold serve` leaves them where it is started
        notes.mkdir()
        (notes / "url").write_text(f"{service.url}\n")
        (notes / "token").write_text(f"{service.token}\n")
        return cls(
            folder,
            {
                **os.environ,
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
                "COLUMNS": "110",
                "TERM": "dumb",
                "XDG_CONFIG_HOME": str(folder / ".config"),
                "XDG_CACHE_HOME": str(folder / ".cache"),
                "WARPFOLD_URL": service.url,
                "WARPFOLD_TOKEN": service.token,
            },
        )

    def run(self, page: Path) -> int:
        """Run all examples of a page; how many were compared. Raises AssertionError with what differs."""
        code = list(blocks(page))
        pairs = [
            (block, following if following and following.language == "text" else None)
            for block, following in zip(code, [*code[1:], None], strict=True)
            if block.language == "python"
        ]
        return self._console(page, [block for block in code if block.language == "console"]) + self._python(page, pairs)

    def _console(self, page: Path, consoles: Sequence[Block]) -> int:
        wanted = [(block.line, command) for block in consoles for command in commands(block)]
        # The mark leaves `$?` as it was.
        script = "\n".join(f"{command.words}\n__code=$?; printf '{_MARK}'; (exit $__code)" for _, command in wanted)
        script = script.replace(_ADDRESS, self.environment["WARPFOLD_URL"])
        printed = self._execute(["bash", "-c", script]).split(_MARK)
        for (line, command), output in zip(wanted, printed, strict=False):
            assert fits(command.output, output), f"{page}:{line}: $ {command.words}\nprinted:\n{output}"
        return len(wanted)

    def _python(self, page: Path, pairs: Sequence[tuple[Block, Block | None]]) -> int:
        if not pairs:
            return 0
        script = "\n".join(f"{code.text}\nprint('{_MARK}', end='')" for code, _ in pairs)
        printed = self._execute([sys.executable, "-c", script]).split(_MARK)
        assert len(printed) == len(pairs) + 1, f"{page}: {printed[-1]}"
        for (code, output), text in zip(pairs, printed, strict=False):
            expected = "" if output is None else output.text
            assert fits(expected, text), f"{page}:{code.line}: printed:\n{text}"
        return len(pairs)

    def _execute(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=1700,
        )
        return done.stdout
