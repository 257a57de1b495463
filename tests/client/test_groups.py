"""Reductions along axes and by segments through the client: NumPy arrays in, NumPy arrays out."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpfold.client import Client, ReduceArrayResult, Refused
from warpfold.client.groups import fields_of
from warpfold.client.local import grouping_of
from warpfold.client.value_arrays import array_from
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes, Segments

SMALL = np.array([[1e16, 1.0], [1.0, 2.0], [-1e16, 4.0]])
LARGE = np.arange(24_000, dtype=np.float32).reshape(3, 200, 40)


def test_an_axis_gives_a_numpy_array(client: Client) -> None:
    down = client.reduce(SMALL, axis=0)
    assert down.dtype == np.float64
    assert down.tolist() == [1.0, 7.0]
    kept = client.reduce(SMALL, "max", axis=-1, keepdims=True)
    assert kept.tolist() == [[1e16], [2.0], [4.0]]
    assert client.reduce(SMALL, axis=(0, 1)).shape == ()
    assert client.reduce(np.asfortranarray(SMALL), "argmin", axis=0).tolist() == [2, 0]


def test_an_uploaded_array_keeps_its_shape(client: Client) -> None:
    assert (client.reduce(LARGE, axis=(0, 2)) == LARGE.astype(np.float64).sum(axis=(0, 2))).all()
    job = client.submit_reduce(LARGE, "mean", axis=1)
    result = job.get()
    assert isinstance(result, ReduceArrayResult)
    assert np.asarray(result).shape == (3, 40)
    assert result.kernel == "columns"
    assert client.dataset(job.spec["source"]["id"]).shape == (3, 200, 40)


def test_segments_have_a_length_or_offsets_and_a_missing_value_is_masked(client: Client) -> None:
    assert client.reduce([1, 2, 3, 4, 5], segments=2).tolist() == [3, 7, 5]
    most = client.reduce([1.0, 2.0, 4.0], "max", segments=[0, 2, 2, 3])
    assert isinstance(most, np.ma.MaskedArray)
    assert most.tolist() == [2.0, None, 4.0]


def test_what_is_wrong_names_the_field(client: Client) -> None:
    for array in (SMALL, LARGE):  # what the client knows is refused before it sends
        with pytest.raises(InvalidInput, match="there is no axis 3"):
            client.reduce(array, axis=3)
    with pytest.raises(Refused) as refused:
        client.reduce(SMALL, "prod", axis=0, backend="cuda")
    assert [error.field for error in refused.value.errors] == ["backend"]


@pytest.mark.parametrize(
    ("arguments", "fields", "grouping"),
    [
        ((None, False, None), {}, None),
        ((np.int64(1), True, None), {"axis": 1, "keepdims": True}, AlongAxes((1,), keepdims=True)),
        (((0, -1), False, None), {"axis": [0, -1]}, AlongAxes((0, -1))),
        ((None, False, 3), {"segments": {"length": 3}}, Segments(None, 3)),
        ((None, False, np.array([0, 2])), {"segments": {"offsets": [0, 2]}}, Segments((0, 2))),
        ((None, False, {"length": 2}), {"segments": {"length": 2}}, Segments(None, 2)),
    ],
)
def test_arguments_become_the_fields_of_a_spec(arguments: tuple[Any, ...], fields: object, grouping: object) -> None:
    made = fields_of(*arguments)
    assert made == fields
    assert grouping_of(made) == grouping


def test_values_have_the_dtype_that_holds_them() -> None:
    assert array_from([2**63], (1,), "integer").dtype == np.uint64
    assert array_from([-1, 2], (2,), "integer").dtype == np.int64
    assert array_from([2**64, -1], (2,), "integer").tolist() == [2**64, -1]
    large = [2**64 - 1, 2**63 - 3, 1]  # the largest of uint64 columns, of which float64 has only the last
    assert array_from(large, (3,), "uint64").tolist() == large
    assert array_from([1.5, None], (2,), "bfloat16").dtype == ml_dtypes.bfloat16
    assert array_from([True, False], (1, 2), "bool").dtype == np.bool_
    assert array_from([], (0, 3), "float32").shape == (0, 3)
