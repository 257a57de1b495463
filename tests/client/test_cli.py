"""Help and completion, without a service."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

from tests.support import processes
from tests.support.shell import Shell
from warpfold.__main__ import ALSO_FROM_AFAR
from warpfold.__main__ import COMMANDS as COMMANDS_OF_THE_SERVER
from warpfold.app.config import Settings
from warpfold.client.cli import build
from warpfold.client.cli.commands import COMMANDS as ROWS
from warpfold.client.cli.commands import LaterCommand
from warpfold.client.cli.reducing import complete_op

LISTED: Any = typer.main.get_command(build())
COMMANDS: Any = {
    name: command.loaded() if isinstance(command, LaterCommand) else command
    for name, command in LISTED.commands.items()
}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(COMMANDS_OF_THE_SERVER)))
def test_every_command_explains_itself(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert all(
        parameter.help for parameter in options if parameter.name not in ("op", "dtype", "strategy", "backend", "host")
    ), name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    listed, command = LISTED.commands[name], COMMANDS[name]
    assert listed.help == command.help.split("\n\n")[0]
    assert listed.rich_help_panel == command.rich_help_panel


def test_every_command_of_a_module_is_listed() -> None:
    defined = set()
    for module in {row.module for row in ROWS.values()}:
        app = typer.Typer()
        import_module(f"warpfold.client.cli.{module}").register(app)
        defined |= set(typer.main.get_group(app).commands)
    assert defined == set(ROWS)


_NOWHERE = ("--url", "http://127.0.0.1:1", "--patience", "0")
_SERVER = frozenset({"fastapi", "rich", "warpfold.app", "warpfold.worker"})
_COMPILER = frozenset({"asyncio", "numba", "scipy", "yaml"})


@pytest.mark.parametrize(
    ("words", "code", "never", "most"),
    [
        (("--help",), 0, {"warpfold.client.api", "pydantic", "httpx", "numpy", *_COMPILER}, 15),
        (("reduce", "--help"), 0, {"warpfold.client.api", "httpx", "numpy", *_COMPILER}, 20),
        ((*_NOWHERE, "show", "5f0c"), 3, {"numpy", "warpfold.kernels.dtypes", *_COMPILER}, 50),
        ((*_NOWHERE, "reduce", "three.npy"), 3, {"numpy", "pyarrow", "warpfold.client.local", "zarr", *_COMPILER}, 86),
        ((*_NOWHERE, "submit", "--values", "1 2"), 3, {"numpy", "asyncio", "numba"}, 71),
        (("inspect", "three.npy", "--json"), 0, {"numpy", "httpx", "warpfold.client.api", *_COMPILER}, 40),
        (("reduce", "three.npy", "--local"), 0, {"httpx", "pyarrow", "warpfold.contract.sources", "zarr"}, 225),
    ],
    ids=lambda words: words[-1] if isinstance(words, tuple) else None,
)
def test_a_command_imports_what_it_needs(
    tmp_path: Path, words: tuple[str, ...], code: int, never: set[str], most: int
) -> None:
    np.save(tmp_path / "three.npy", np.array([1.0, 2.5, 3.25]))
    script = f"import sys; sys.argv = ['warpfold', *{words!r}]; from warpfold.client.cli import main\n"
    script += "try: main()\nfinally: print(*sys.modules)"
    environment = {**os.environ, "WARPFOLD_TOKEN": "a-token", "HOME": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == code, done.stderr
    imported = set(done.stdout.splitlines()[-1].split())
    assert imported & {*never, *_SERVER} == set()
    assert len([name for name in imported if name.partition(".")[0] == "warpfold"]) <= most


def test_help_shows_examples_and_exit_codes(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    whole = shell.run("--help")
    assert whole.code == 0
    assert "Exit codes: 0 done; 1 the job failed" in whole.out
    submit = shell.run("submit", "--help").out
    assert "warpfold submit --kind benchmark --set 'strategies=[exact, numpy]'" in submit


def test_the_lines_of_help_end_where_the_terminal_ends(tmp_path: Path) -> None:
    whole = Shell(tmp_path, {"COLUMNS": "110"}).spawn("--help").out
    listed = whole[whole.index("  reduce ") : whole.index("  merge ")].splitlines()
    assert " ".join(" ".join(listed).split()).endswith("with --by to a table of groups.")
    assert 90 < max(map(len, listed)) <= 110
    text = Shell(tmp_path, {"COLUMNS": "110"}).spawn("reduce", "--help").out
    paragraph = text[text.index("A .npy or .npz file") : text.index("Arguments")]
    lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
    assert all(len(line) > 90 for line in lines[:-1]), lines


@pytest.mark.parametrize("words", [(), ("reduce",), ("batches",), ("batches", "list")])
def test_help_shows_no_type_beside_a_flag(tmp_path: Path, words: tuple[str, ...]) -> None:
    text = Shell(tmp_path, {"COLUMNS": "110"}).run(*words, "--help").out
    assert re.search(r"--help +Show this message", text), text
    assert "<bool>" not in text


def test_a_shell_can_be_taught(tmp_path: Path) -> None:
    shell = Shell(
        tmp_path, {"_WARPFOLD_COMPLETE": "complete_bash", "COMP_WORDS": "warpfold reduce --op no", "COMP_CWORD": "3"}
    )
    assert shell.spawn().out.split() == ["norm1", "norm2", "norm_inf", "norm3", "norm4"]
    assert [name for name, _ in complete_op("argm")] == ["argmin", "argmax"]


def test_an_unknown_command_is_a_matter_of_usage(tmp_path: Path) -> None:
    assert Shell(tmp_path).run("sum").code == 2


@pytest.mark.parametrize("name", sorted(COMMANDS_OF_THE_SERVER))
def test_a_command_of_the_server_explains_itself_and_takes_no_other_words(tmp_path: Path, name: str) -> None:
    module, _ = COMMANDS_OF_THE_SERVER[name]
    log = tmp_path / "log"
    assert processes.start(Settings(), log, module, "--help").wait(60) == 0
    assert f"usage: warpfold {name}" in log.read_text().lower()
    assert processes.start(Settings(), log, module, "--no-such-option").wait(60) == 2


@pytest.mark.parametrize("name", sorted(COMMANDS_OF_THE_SERVER.keys() - ALSO_FROM_AFAR))
def test_a_command_of_the_server_takes_the_place_of_the_process_with_all_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    executed: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, words: executed.append([program, *words]))
    Shell(tmp_path).run(name, "--help", "--no-such-option", "word")
    module, _ = COMMANDS_OF_THE_SERVER[name]
    assert executed == [
        [sys.executable, sys.executable, "-P", "-m", module, "--help", "--no-such-option", "word"],
    ]


def test_the_exit_code_of_a_command_of_the_server_is_that_of_the_process(tmp_path: Path) -> None:
    assert Shell(tmp_path).spawn("token", "--no-such-option").code == 2


@pytest.mark.parametrize("columns", [40, 80, 140])
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(COMMANDS_OF_THE_SERVER)))
def test_help_names_every_option_whole(name: str, columns: int) -> None:
    command = COMMANDS[name]
    text = command.get_help(typer.Context(command, info_name=name, terminal_width=columns))
    options = [
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option[0] == "-"
    ]
    assert [option for option in options if option not in re.findall(r"[-\w]+", text)] == []


def test_a_command_of_the_server_begins_before_the_client_is_imported() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "warpfold", "worker", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "usage: warpfold worker" in done.stdout
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    assert "warpfold" in imported
    assert "warpfold.client" not in imported


def test_a_package_is_imported_from_the_public_name_without_the_client() -> None:
    code = "import sys; from warpfold import contract; sys.exit('warpfold.client' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
