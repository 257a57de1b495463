"""Tables of results that have no charts."""

import pytest

from warpfold.app.reports.kinds import tables_only
from warpfold.contract.kinds.reduce import ReduceArrayResult

TIME = {"iso": "P1DT2H", "unit": "s", "timezone": None, "exact": None}


@pytest.mark.parametrize(
    ("words", "shown"), [({}, "0.1"), ({"decimal": ["0.100", None]}, "0.100"), ({"time": [TIME, None]}, "P1DT2H")]
)
def test_values_of_an_array_are_shown_in_full(words: dict[str, object], shown: str) -> None:
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    made = {**example, "shape": [2], "values": [0.1, None], "hex": None, "counts": [1, 0], **words}
    (table,) = tables_only.array(ReduceArrayResult.model_validate(made))
    assert [row[1] for row in table.rows] == [shown, "\u2013"]


def test_means_that_are_fractions_have_a_column_of_them() -> None:
    example = ReduceArrayResult.model_json_schema()["examples"][0]
    made = {**example, "shape": [2], "values": [2.5, None], "counts": [2, 0], "hex": None, "fraction": ["5/2", None]}
    (table,) = tables_only.array(ReduceArrayResult.model_validate(made))
    assert (table.columns[-1], [row[-1] for row in table.rows]) == ("exactly", ["5/2", "\u2013"])
