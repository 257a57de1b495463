"""Tests of elements in the request itself: what is stored of them is read back as it was accepted."""

import pytest

from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources.values import ValuesSource
from warpfold.contract.tasks import stored_task, task_spec


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0.1, -0.0, 5e-324, 1.7976931348623157e308, 123456789.125, 1e22, 0.30000000000000004], "float64"),
        ([1.5, 2, "0x1.8p+1", "nan", "-inf", True], "float32"),
        ([9223372036854775807, -9223372036854775808], "int64"),
        ([18446744073709551615, 0], "uint64"),
        ([True, False], "bool"),
        ([], "float64"),
    ],
)
def test_a_stored_spec_is_read_back_with_the_numbers_that_were_accepted(values: list[object], dtype: str) -> None:
    source = {"type": "values", "values": values, "dtype": dtype}
    accepted = task_spec.validate_python({"kind": "reduce", "op": "sum", "source": source})
    read = stored_task(accepted.model_dump_json(exclude={"webhook"}))
    assert read == accepted
    assert isinstance(read, ReduceSpec)
    assert isinstance(accepted, ReduceSpec)
    assert isinstance(read.source, ValuesSource)
    assert isinstance(accepted.source, ValuesSource)
    assert [(type(value), repr(value)) for value in read.source.values] == [
        (type(value), repr(value)) for value in accepted.source.values
    ]


def test_only_what_is_stored_is_taken_without_a_look_at_each_value() -> None:
    text = '{"kind":"reduce","op":"sum","source":{"type":"values","values":[1.5,null],"dtype":"float64"}}'
    with pytest.raises(ValueError, match="Should be a finite number"):
        task_spec.validate_json(text)
    stored = stored_task(text)
    assert isinstance(stored, ReduceSpec)
    assert stored.source.known_count == 2
