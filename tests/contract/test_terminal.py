"""Tables on terminals of every width and in pipes: nothing is cut."""

import itertools

import pytest
from rich.text import Text

from tests.support.terminals import on_terminal
from warpfold.contract.terminal import properties, table

NAMES = ("op", "n", "device", "ms", "remarks")
DEVICE = "Intel(R) Xeon(R) Processor @ 2.60GHz of some machine"
ROWS = [
    ("sum", 1_000, DEVICE, 0.0123, "throttled contended unconverged suspect"),
    ("max", 1_000_000, "H200", 1.5, None),
]
WIDTHS = (1, 5, 20, 40, 60, 80, 140, 400)


def show(fold: str | None) -> None:
    table(NAMES, ROWS, right=("n", "ms"), fold=fold)


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_pipe_gets_a_line_for_each_row_whatever_is_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    show("device")
    assert capsys.readouterr().out.splitlines() == [
        "op           n  device                                                    ms  remarks",
        f"sum      1,000  {DEVICE}  0.0123  throttled contended unconverged suspect",
        f"max  1,000,000  {'H200':<52}     1.5",
    ]


def test_a_wide_terminal_has_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    show("device")
    assert on_terminal(140, lambda: show("device")) == capsys.readouterr().out


def test_a_column_takes_more_lines_where_there_is_too_little_room() -> None:
    assert on_terminal(90, lambda: show("device")).splitlines() == [
        "op           n  device                         ms  remarks",
        "sum      1,000  Intel(R) Xeon(R)           0.0123  throttled contended unconverged suspect",
        "                Processor @ 2.60GHz of",
        "                some machine",
        "max  1,000,000  H200                          1.5",
    ]


def test_a_row_is_a_block_where_there_is_no_room_for_columns() -> None:
    assert on_terminal(40, lambda: show("device")).splitlines() == [
        "op       sum",
        "n        1,000",
        "device   Intel(R) Xeon(R) Processor @",
        "         2.60GHz of some machine",
        "ms       0.0123",
        "remarks  throttled contended unconverged",
        "         suspect",
        "",
        "op       max",
        "n        1,000,000",
        "device   H200",
        "ms       1.5",
    ]


@pytest.mark.parametrize(("columns", "fold"), list(itertools.product(WIDTHS, (None, "device", "remarks"))))
def test_nothing_is_cut_at_any_width(columns: int, fold: str | None) -> None:
    shown = on_terminal(columns, lambda: show(fold))
    for word in ("1,000", "1,000,000", "0.0123", "1.5", "contended", "unconverged", "2.60GHz"):
        assert word in shown.split()
    assert columns < 40 or max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown


def test_a_long_word_of_a_fact_stays_whole_to_be_copied() -> None:
    digest = "0123456789abcdef" * 4
    shown = on_terminal(
        30, lambda: properties([("id", digest), ("name", "a name of several words, and long"), ("no", None)])
    )
    assert shown.splitlines() == [
        f"id    {digest}",
        "name  a name of several words,",
        "      and long",
    ]


def test_a_long_word_of_a_column_is_broken_and_none_of_it_lost() -> None:
    word = "abcdefghij" * 5
    shown = on_terminal(40, lambda: table(("id", "name"), [("1", word)], fold="name"))
    assert squeezed(shown) == f"idname1{word}"


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "a:smile:b", "back\\[slash]\\", "[/]", "日本語の名前"])
def test_a_name_means_nothing_but_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(("name", "n"), [(name, 1)], right=("n",))
    properties([("name", name)])
    assert capsys.readouterr().out.count(name) == 2
    assert on_terminal(80, lambda: properties([(name, name)])).count(name) == 2


def test_columns_stand_below_each_other_though_letters_are_wide(capsys: pytest.CaptureFixture[str]) -> None:
    table(("name", "n"), [("日本", 1), ("abcd", 2)])
    assert capsys.readouterr().out.splitlines() == ["name  n", "日本  1", "abcd  2"]


def test_lines_within_a_cell_are_lines_of_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    table(("verdict", "said"), [(Text("broken", style="red"), "no GPU\n→ buy one"), ("ok", "")], headed=False)
    assert capsys.readouterr().out.splitlines() == ["broken  no GPU", "        → buy one", "ok"]


def test_a_table_of_nothing_is_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    table(NAMES, [])
    table(NAMES, [], headed=False)
    properties([])
    assert capsys.readouterr().out == "op  n  device  ms  remarks\n"
