"""Arrays that lie in an object as they are in memory: the selected elements, in C order, and few bytes more."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.places.web import WebServer
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import read_head
from warpfold.kernels.places import arrays
from warpfold.kernels.places.arrays import array_at
from warpfold.kernels.places.file import as_file
from warpfold.kernels.places.remote import RemoteObject
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Section, SequentialSource, in_order


def put(web: WebServer, array: NDArray[Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array)
    web.files["a.npy"] = buffer.getvalue()


def read(web: WebServer, selected: tuple[slice, ...] = ()) -> tuple[NDArray[Any], int]:
    """The elements, and how many bytes of the object were read."""
    session = web.session()
    remote = RemoteObject(session, session.places.target(web.url("a.npy"), ""), 200)
    file = as_file(remote)
    source = array_at(file, read_head(file), selected)
    assert isinstance(source, SequentialSource)
    parts = list(in_order(source, 1000))
    return np.concatenate(parts) if parts else np.empty(0, source.dtype.numpy), remote.fetched


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "REQUEST_BYTES", 64)
    monkeypatch.setattr(arrays, "_SKIPPED_BYTES", 24)


@st.composite
def selections(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    chosen = []
    for length in shape:
        start = draw(st.integers(0, length))
        chosen.append(slice(start, draw(st.integers(start, length)), draw(st.integers(1, 5))))
    whole = draw(st.integers(0, len(shape)))
    return shape, (*chosen[: len(shape) - whole], *(slice(0, length, 1) for length in shape[len(shape) - whole :]))


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(selections(), st.sampled_from(["<f8", ">i4", "u1", "?"]), st.booleans())
def test_any_selection_is_what_numpy_takes(
    web: WebServer, chosen: tuple[tuple[int, ...], tuple[slice, ...]], dtype: str, fortran: bool
) -> None:
    shape, selected = chosen
    array = np.arange(np.prod(shape), dtype="i8").reshape(shape).astype(dtype)
    put(web, np.asfortranarray(array) if fortran else array)
    native = array.dtype.newbyteorder("=")
    assert read(web, selected)[0].tobytes() == array[selected].astype(native).tobytes()


def test_a_part_of_an_array_is_read_without_the_rest(web: WebServer) -> None:
    array = np.arange(2_000_000, dtype="i8").reshape(40, 50_000)
    put(web, array)
    values, fetched = read(web, (slice(3, 5, 1), slice(0, 50_000, 1)))
    assert values.tobytes() == array[3:5].tobytes()
    assert fetched <= 2 * 50_000 * 8 + 1_000
    values, fetched = read(web, (slice(0, 40, 39), slice(10, 20, 1)))
    assert values.tobytes() == array[::39, 10:20].tobytes()
    assert fetched <= 10_000


def test_a_large_array_in_fortran_order_is_refused(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MOST_REORDERED_BYTES", 100)
    put(web, np.asfortranarray(np.ones((10, 10))))
    with pytest.raises(InvalidInput, match="store it in C order"):
        read(web)
    put(web, np.ones((10, 10)))
    assert read(web)[0].size == 100


def sections_of(web: WebServer, selected: tuple[slice, ...] = ()) -> list[Section] | None:
    session = web.session()
    file = as_file(RemoteObject(session, session.places.target(web.url("a.npy"), ""), 200))
    source = array_at(file, read_head(file), selected)
    assert isinstance(source, SequentialSource)
    return None if source.sections is None else list(source.sections())


@pytest.mark.usefixtures("small")
def test_any_thread_may_read_any_section_of_an_array(web: WebServer) -> None:
    numbers = np.random.default_rng().standard_normal((50, 3))
    put(web, numbers)
    for selected, expected in (
        ((), numbers),
        ((slice(5, 41, 1), slice(0, 3, 1)), numbers[5:41]),
        ((slice(0, 50, 9), slice(0, 3, 1)), numbers[::9]),
    ):
        sections = sections_of(web, selected)
        assert sections is not None
        assert len(sections) >= expected.nbytes // 64
        arrays = {each.start: np.concatenate(list(each.make())) for each in reversed(sections)}
        assert [(each.start, each.count) for each in sections] == [(at, arrays[at].size) for at in sorted(arrays)]  # type: ignore[type-var]
        assert np.concatenate([arrays[at] for at in sorted(arrays)]).tolist() == expected.ravel().tolist()  # type: ignore[type-var]


@pytest.mark.usefixtures("small")
def test_rows_that_are_read_for_a_part_of_them_are_no_sections(web: WebServer) -> None:
    put(web, np.arange(150.0).reshape(50, 3))
    assert sections_of(web, (slice(0, 50, 1), slice(0, 2, 1))) is None
    put(web, np.asfortranarray(np.arange(150.0).reshape(50, 3)))
    assert sections_of(web) is None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("op", ["sum", "var", "max", "argmin", "count_nonzero"])
def test_sections_give_what_the_array_in_memory_gives(web: WebServer, op: str) -> None:
    numbers = np.random.default_rng().standard_normal(5000) * 1e9
    put(web, numbers)
    session = web.session()
    file = as_file(RemoteObject(session, session.places.target(web.url("a.npy"), ""), 200))
    of_web, of_memory = (
        CpuBackend().reduce(source, op) for source in (array_at(file, read_head(file)), ArraySource(numbers))
    )
    assert (of_web.value, of_web.state, of_web.count) == (of_memory.value, of_memory.state, of_memory.count)


def test_an_object_that_changes_between_sections_is_refused(web: WebServer) -> None:
    put(web, np.arange(1_000_000.0))
    session = web.session()
    file = as_file(RemoteObject(session, session.places.target(web.url("a.npy"), ""), 200))
    source = array_at(file, read_head(file))
    put(web, np.arange(1_000_000.0) + 1)
    with pytest.raises(InvalidInput, match="changed while it was read"):
        CpuBackend().reduce(source, "sum")
