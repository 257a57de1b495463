"""The benchmark of engines compares ways that give one and the same bits."""

import pytest

from benchmarks.engines import ENGINES, markdown, measure


@pytest.mark.parametrize("engine", list(ENGINES))
def test_every_way_of_an_engine_is_measured_and_has_our_bits(engine: str) -> None:
    rows = [row for groups in (0, 7) for row in measure(engine, groups, rows=3_000, rounds=1)]
    assert {row.groups for row in rows if row.variant == "own sum"} == {0, 7}
    assert all(row.wrong == 0 for row in rows if not row.variant.startswith("own"))
    table = markdown(rows).splitlines()
    assert table[0] == "| | whole column | 7 groups |"
    assert f"| {engine}: own sum | 1.00 | 1.00 |" in table
