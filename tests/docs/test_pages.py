"""Every example of these pages runs, and prints what the page says."""

from pathlib import Path

import pytest

from tests.support.docs.pages import Block, blocks, commands, fits
from tests.support.docs.runner import Runner
from tests.support.service import Service

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("../README.md", "tutorial.md", "cli.md", "client.md", "accuracy.md", "administration.md", "exact-state.md"),
    *(
        "operations/monitoring.md",
        "presets.md",
        "batches.md",
        "arrays.md",
        "quantiles.md",
        "windows.md",
        "elements.md",
        "statistics.md",
        "groups.md",
        "engines.md",
        "tables.md",
    ),
)


@pytest.mark.timeout(1800)  # a page has up to forty commands
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_print_what_it_says(
    service: Service, command_address: Path, tmp_path: Path, name: str
) -> None:
    assert Runner.at(service, command_address, tmp_path).run(DOCS / name) >= 1


def test_a_block_that_is_not_to_be_run_is_passed_over(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ one\n```\n<!-- not run: it takes an hour -->\n\n```console\n$ two\n```\n```python\nthree\n```\n"
    )
    assert [(block.text, block.line) for block in blocks(page)] == [("$ one", 2), ("three", 10)]


def test_commands_have_their_outputs() -> None:
    block = Block("console", "$ a \\\n>   b\none\n> two\n$ c", 1)
    assert [(command.words, command.output) for command in commands(block)] == [
        ("a \\\n  b", "one\n> two\n"),
        ("c", ""),
    ]


def test_an_ellipsis_stands_for_anything() -> None:
    assert fits("a … c", "a b c")
    assert not fits("a … c", "a b d")
    assert fits("first\n…\nlast", "first\n2\n3\nlast")
    assert not fits("1.5", "1x5")
    assert fits("job 5f0c0000-0000-4000-8000-000000000000", "job 77ab0000-0000-4000-8000-00000000000a")


def test_a_page_that_says_something_else_is_found_out(service: Service, command_address: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    runner = Runner.at(service, command_address, tmp_path)
    for text in ("```console\n$ echo one\ntwo\n```\n", "```python\nprint(1)\n```\n```text\n2\n```\n"):
        page.write_text(text)
        with pytest.raises(AssertionError, match=r"page\.md:2"):
            runner.run(page)
    page.write_text("```python\nraise ValueError('broken')\n```\n")
    with pytest.raises(AssertionError, match="ValueError: broken"):
        runner.run(page)
