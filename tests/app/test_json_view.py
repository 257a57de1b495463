from warpfold.app.json_view import json_view_of


def test_results_of_kinds_not_known_yet_are_facts_and_tables() -> None:
    view = json_view_of("Result", {"a": {"b_ms": 1.5}, "rows": [{"x": 1, "y": {"z": True}}, {"x": 2}], "none": None})
    assert view.rows == [("a b", "1.50 ms"), ("none", "–")]
    [table] = view.tables
    assert (list(table.headings), [list(row) for row in table.rows]) == (["x", "y z"], [["1", "yes"], ["2", "–"]])


def test_a_long_table_says_what_it_leaves_out() -> None:
    [table] = json_view_of("", {"rows": [{"x": number} for number in range(1000)]}).tables
    assert len(table.rows) + table.more == 1000
