from typing import Any

import pytest
from pydantic import ValidationError

from app.jobs.brief import brief_of
from app.jobs.spec import job_spec, needs
from kernels.errors import InvalidInput

VALUES = {"type": "values", "values": [1, 2], "dtype": "float32"}


def spec(**changes: Any) -> Any:
    return job_spec.validate_python({"kind": "reduce", "source": VALUES, **changes})


def test_a_spec_survives_its_own_json_to_the_bit() -> None:
    given = spec(source={"type": "values", "values": [-0.0, 5e-324, 2**70, True, "0x1.8p+1", "nan"]})
    read: Any = job_spec.validate_json(given.model_dump_json())
    assert read == given
    assert str(read.source.values[0]) == "-0.0"


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        spec().op = "mean"


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        ({"backend": "cpu"}, "cpu"),
        ({"backend": "cuda"}, "cuda"),
        ({}, "any"),
        ({"strategy": "numpy"}, "cpu"),
        ({"strategy": "cupy"}, "cuda"),
        ({"source": {"type": "path", "path": "x.npy"}, "strategy": "numpy"}, "cpu"),
        ({"source": {"type": "path", "path": "x.npy"}}, "any"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_backend_and_strategy(changes: dict[str, Any], slots: str) -> None:
    assert needs(spec(**changes)) == slots


def test_a_fault_of_the_kernels_keeps_its_field() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(source={"type": "values", "values": [1, 300], "dtype": "int8"})
    [error] = caught.value.errors()
    cause = error["ctx"]["error"]
    assert isinstance(cause, InvalidInput)
    assert cause.field == "source.values.1"


def test_only_long_values_have_a_brief() -> None:
    assert brief_of(spec(source={"type": "values", "values": list(range(16))})) is None
    assert brief_of(spec(source={"type": "generate", "distribution": "zeros", "n": 10**9})) is None
    assert brief_of(spec(source={"type": "values", "values": list(range(17))})) is not None


def test_one_bad_value_of_many_is_one_error() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(source={"type": "values", "values": [None] * 10_000})
    assert caught.value.error_count() == 1
