"""Clients that generators of others make of the service's document do what the page about them does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.runner import Runner
from tests.support.service import Service

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "generated-clients.md"
TOOLS = ROOT / ".venv-generators"
# What pip, npm and make say where no index of packages can be reached, or has none of these, or where there is no npm.
_UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeout|NameResolutionError|ProxyError|SSLError|Could not find a version"
    r"|ENOTFOUND|ECONN\w+|ETIMEDOUT|EAI_AGAIN|code E[45]\d\d|npm: No such file|npm: not found"
)
_FILE = re.compile(r"`([a-z]+\.[a-z]+)`:\n+(?:<!-- .* -->\n)?```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def install(stamp: str) -> None:
    """Have the Makefile install a generator, whose versions are locked. Without a network the test is skipped."""
    variables = [f"PYTHON={sys.executable}", f"BIN={Path(sys.executable).parent}/"]
    command = ["make", "--no-print-directory", "-C", str(ROOT), f".venv-generators/{stamp}", *variables]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if made.returncode and (reason := _UNREACHABLE.search(made.stdout + made.stderr)):
        pytest.skip(f"{stamp[1:]}'s generator cannot be installed here: {reason[0]}")
    assert made.returncode == 0, made.stdout + made.stderr


def section(heading: str, folder: Path) -> Path:
    """The page with the sections before the first heading and below `heading` alone. Its files are put into
    `folder`."""
    first, *sections = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    [chosen] = [text for text in sections if text.startswith(f"## {heading}\n")]
    files = dict(_FILE.findall(chosen))
    assert files
    for name, text in files.items():
        (folder / name).write_text(text)
    page = folder / "page.md"
    page.write_text(first + chosen)
    return page


def test_a_generated_client_of_python_runs_a_job_a_batch_a_list_and_an_upload(
    service: Service, command_address: Path, tmp_path: Path
) -> None:
    install(".python")
    runner = Runner.at(service, command_address, tmp_path)
    (tmp_path / ".bin" / "openapi-python-client").symlink_to(TOOLS / "bin" / "openapi-python-client")
    assert (
        runner.run(section("Python", tmp_path)) == 4
    )  # a warning of the generator is an output that is not on the page


def test_types_of_typescript_check_a_program_that_runs(service: Service, command_address: Path, tmp_path: Path) -> None:
    install(".typescript")
    runner = Runner.at(service, command_address, tmp_path)
    (tmp_path / "node_modules").symlink_to(TOOLS / "node_modules")
    for program in ("openapi-typescript", "tsc"):
        (tmp_path / ".bin" / program).symlink_to(TOOLS / "node_modules" / ".bin" / program)
    assert runner.run(section("TypeScript", tmp_path)) == 5
