"""httpx comes without its command line, and is whole otherwise."""

import subprocess
import sys


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def test_its_command_line_is_not_imported() -> None:
    run(
        "import sys; from warpfold.client.http import httpx\n"
        "assert not {'httpx._main', 'rich', 'pygments'} & set(sys.modules), sorted(sys.modules)\n"
        "assert httpx.Client and httpx.AsyncClient and httpx.HTTPTransport"
    )


def test_where_httpx_was_imported_before_it_is_the_same() -> None:
    run("import httpx as theirs; from warpfold.client.http import httpx; import httpx._main; assert httpx is theirs")
