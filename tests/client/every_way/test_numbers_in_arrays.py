"""Arrays, columns and frames of every library, files and uploads: held to the sum by `fractions.Fraction`.

Whatever holds numbers of known dtypes is summed exactly, columns that no dtype holds together among them; what cannot
be is refused. Most examples are reduced in this process; some go through a service. The test of a library that is not
installed is skipped, with the reason.
"""

import base64
import contextlib
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.shell import Shell
from warpfold.client import Client, ExactState, local
from warpfold.client.arrays import Part, parts_of
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.exact import integer

Columns = dict[str, NDArray[Any]]
Sum = tuple[str, Fraction]

_NAMES = ("int64", "uint64", "int32", "uint8", "bool", "float64", "float32")


@st.composite
def _columns(draw: st.DrawFn) -> Columns:
    """Up to three columns of one length, of dtypes that every library has."""
    rows = draw(st.integers(1, 4))
    columns = {}
    for at, name in enumerate(draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3))):
        low, high = (0, 0) if DTYPES[name].is_float else DTYPES[name].bounds
        # Ends of the range and what float64 does not hold, more often than chance would have them.
        ends = [end for end in (low, high, 2**53 + 1, -(2**53), 2**63 + 1, 0) if low <= end <= high]
        whole = st.one_of(st.sampled_from(ends), st.integers(low, high))
        real = st.floats(allow_nan=False, allow_infinity=False, width=32 if name == "float32" else 64)
        elements = st.lists(real if DTYPES[name].is_float else whole, min_size=rows, max_size=rows)
        columns[f"c{at}"] = np.array(draw(elements), dtype=name)
    return columns


def of_columns(columns: Columns) -> Sum:
    """Whether the sum of the columns is an integer or a float, and the true sum."""
    real = any(array.dtype.kind == "f" for array in columns.values())
    total = sum((Fraction(element.item()) for array in columns.values() for element in array.flat), Fraction())
    return "float" if real else "integer", total


def reduced(data: object) -> Sum:
    """The exact sum of what the client takes `data` for, part by part as `Client.reduce` adds it."""
    return sum_of(parts_of(data))


def sum_of(parts: list[Part]) -> Sum:
    """The exact sum of parts, as `Client.reduce` adds them."""
    states = [ExactState.from_bytes(local.reduce(part.array).state or b"") for part in parts]
    state = states[0]
    for other in states[1:]:
        state = state.merge(other)
    if any(part.array.dtype.kind == "f" for part in parts):
        return "float", Fraction(state.units, 2**1074)
    return "integer", Fraction(integer(state))


def one_by_one(make: Callable[[NDArray[Any]], object]) -> Callable[[Columns], list[object]]:
    return lambda columns: [make(array) for array in columns.values()]


def chunked(array: NDArray[Any]) -> object:
    return pyarrow.chunked_array([array[:1], array[1:]])


class OnlyDLPack:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def nullable(array: NDArray[Any]) -> object:
    """A pandas Series of its own kind of dtype."""
    return pandas.Series(array, dtype=nullable_dtype(array.dtype.name))


def nullable_dtype(name: str) -> str:
    """What pandas calls its own kind of a dtype."""
    return "boolean" if name == "bool" else name.replace("ui", "UI").title().replace("Ui", "UI")


def with_arrow(array: NDArray[Any]) -> object:
    return pandas.Series(array, dtype=pandas.ArrowDtype(pyarrow.from_numpy_dtype(array.dtype)))


def table(columns: Columns) -> object:
    return pyarrow.table({name: chunked(array) for name, array in columns.items()})


def of_library(name: str, make: str, *missing: str) -> Callable[[Columns], list[object]]:
    """Arrays of a library; None in place of those of dtypes that it does not have."""

    def made(columns: Columns) -> list[object]:
        library = pytest.importorskip(name, reason=f"{name} is not installed here")
        try:
            return [None if a.dtype.name in missing else getattr(library, make)(a) for a in columns.values()]
        except RuntimeError as error:  # CuPy without a GPU
            pytest.skip(f"{name} cannot be used here: {error}")

    return made


HELD: Mapping[str, Callable[[Columns], list[object]]] = {
    "NumPy": one_by_one(lambda array: array),
    "NumPy, big-endian and strided": one_by_one(
        lambda array: array.astype(array.dtype.newbyteorder(">")).repeat(2)[::2]
    ),
    "NumPy scalars": one_by_one(list),
    "DLPack": one_by_one(OnlyDLPack),
    "pandas": one_by_one(pandas.Series),
    "pandas, nullable": one_by_one(nullable),
    "pandas on Arrow": one_by_one(with_arrow),
    "pandas index": one_by_one(pandas.Index),
    "pandas frame": lambda columns: [pandas.DataFrame(columns)],
    "pandas frame, nullable": lambda columns: [pandas.DataFrame({n: nullable(a) for n, a in columns.items()})],
    "Polars": one_by_one(polars.Series),
    "Polars frame": lambda columns: [polars.DataFrame(columns)],
    "Arrow": one_by_one(pyarrow.array),
    "Arrow, chunked": one_by_one(chunked),
    "Arrow table": lambda columns: [table(columns)],
    "Arrow batch": lambda columns: [pyarrow.RecordBatch.from_pydict({n: pyarrow.array(a) for n, a in columns.items()})],
    "PyTorch": of_library("torch", "from_numpy", "uint64"),
    "JAX": of_library("jax.numpy", "asarray", "int64", "uint64", "float64"),
    "CuPy": of_library("cupy", "asarray"),
}


@pytest.mark.parametrize("holder", HELD)
@given(columns=_columns())
@settings(max_examples=60, deadline=None)
def test_whatever_holds_numbers_is_summed_exactly(holder: str, columns: Columns) -> None:
    made = HELD[holder](columns)
    wholes = [columns] if len(made) == 1 else [{name: array} for name, array in columns.items()]
    for data, whole in zip(made, wholes, strict=True):
        assert data is None or reduced(data) == of_columns(whole)


@given(columns=_columns())
@settings(max_examples=100, deadline=None)
def test_a_list_of_columns_is_summed_exactly_or_refused(columns: Columns) -> None:
    for data in (list(columns.values()), [pandas.Series(array) for array in columns.values()]):
        with contextlib.suppress(TypeError):
            assert reduced(data) == of_columns(columns)


@given(columns=_columns(), at=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_null_is_left_out_and_counted_or_refused_by_name(columns: Columns, at: int) -> None:
    values = {name: array.tolist() for name, array in columns.items()}
    left = {name: np.delete(array, at % array.size) for name, array in columns.items()}
    for column in values.values():
        column[at % len(column)] = None
    types = {name: pyarrow.from_numpy_dtype(array.dtype) for name, array in columns.items()}
    arrow = pyarrow.table({name: pyarrow.array(column, types[name]) for name, column in values.items()})
    on_arrow = pandas.DataFrame({name: arrow[name].to_pandas(types_mapper=pandas.ArrowDtype) for name in values})
    kinds = {name: nullable_dtype(array.dtype.name) for name, array in columns.items()}
    own = pandas.DataFrame({name: pandas.array(column, dtype=kinds[name]) for name, column in values.items()})
    for frame in (arrow, polars.from_arrow(arrow), on_arrow, own):
        kept = parts_of(frame, nulls="omit")
        assert sum(part.nulls for part in kept) == len(columns)
        assert sum_of(kept) == of_columns(left)
        with pytest.raises(TypeError, match=r"column 'c\d': .* has nulls"):
            parts_of(frame, nulls="raise")


@given(columns=_columns())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_is_summed_exactly(columns: Columns, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for array in columns.values():
        np.save(tmp_path / "x.npy", array)
        done = shell.run("reduce", "x.npy", "--local")
        kind, total = of_columns({"": array})
        assert done.code == 0, done.err
        if kind == "integer":
            assert done.out == f"{total}\n"
        else:
            state = ExactState.of(array)
            assert Fraction(state.units, 2**1074) == total
            assert done.out == f"{state.round_to(dtype_of(array.dtype))!r}\n"


_FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(columns=_columns())
@_FEW
def test_frames_files_and_uploads_come_to_the_true_sum(client: Client, columns: Columns) -> None:
    kind, total = of_columns(columns)
    result = client.reduce(pandas.DataFrame(columns))
    if kind == "integer":
        assert result.dtype == "integer"
        assert result.value == total
    else:
        state = _state(result.state)
        assert Fraction(state.units, 2**1074) == total
        assert repr(result.value) == repr(state.round_to(DTYPES[result.dtype]))
    first = next(iter(columns.values()))
    kept = client.upload(first)
    job = client.submit({"kind": "reduce", "source": {"type": "dataset", "id": kept.id}})
    reduction = client.reduction(job)
    assert _state(reduction.state) == ExactState.of(first)
    assert reduction.dtype == ("integer" if first.dtype.kind in "iub" else first.dtype.name)


def test_a_column_of_which_nothing_is_left_does_not_enter_the_mean_of_a_frame(client: Client) -> None:
    frame = pandas.DataFrame({"n": [2**53 + 1, 2**53 + 3], "x": [math.nan, math.nan]})
    result = client.reduce(frame, "mean", nan_policy="omit")
    assert (result.value, result.op, result.count) == (2.0**53 + 2, "mean", 2)


def _state(text: str | None) -> ExactState:
    return ExactState.from_bytes(base64.b64decode(text or ""))
