"""Heads of .npy files as an attacker writes them: each is refused in words, in little time and memory."""

import io
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib import format as npy

from tests.support.api import running_api
from warpfold.app.config import Settings
from warpfold.contract.sources.path import open_npy
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.npy import Head, read_head
from warpfold.kernels.formats.npy_head import MOST_HEAD_BYTES


def headed(text: str, version: int = 1, claimed: int | None = None) -> bytes:
    written = text.encode("latin-1")
    length = struct.pack("<H" if version == 1 else "<I", len(written) if claimed is None else claimed)
    return b"\x93NUMPY" + bytes([version, 0]) + length + written


def fields(descr: str = "'<f8'", order: str = "False", shape: str = "(3,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


HOSTILE = {
    "9,000 hexadecimal digits": headed(fields(shape=f"(0x{'f' * 9000},)")),
    "9,000 decimal digits": headed(fields(shape=f"({'9' * 9000},)")),
    "a claim of 2 GiB": headed(fields(), 2, 2**31 - 1),
    "a claim of 4 GiB": headed(fields(), 2, 2**32 - 1),
    "brackets in brackets": headed("(" * 9900),
    "signs before signs": headed(fields(shape=f"({'-' * 9000}1,)")),
    "a negative length": headed(fields(shape="(-1,)")),
    "two negative lengths": headed(fields(shape="(-4, -4)")),
    "a product beyond 64 bits": headed(fields(shape="(4294967296, 4294967296)")),
    "a product of elements and bytes beyond 63 bits": headed(fields(shape="(2305843009213693952,)")),
    "a product beyond 64 bits, and a zero": headed(fields(shape="(4294967296, 4294967296, 4294967296, 0)")),
    "a truth value for a length": headed(fields(shape="(True,)")),
    "a fraction for a length": headed(fields(shape="(3.0,)")),
    "a number for a shape": headed(fields(shape="3")),
    "a list for a shape": headed(fields(shape="[3]")),
    "a number for the order": headed(fields(order="0")),
    "a word for the order": headed(fields(order="'False'")),
    "nothing for the order": headed(fields(order="None")),
    "objects": headed(fields("'|O'")),
    "records": headed(fields("[('a', '<f8'), ('b', '|O')]")),
    "records in records": headed(fields("[('a', [('b', [('c', '<f8')])])]")),
    "3,000 fields": headed(fields(f"'{'f8,' * 3000}'")),
    "arrays as elements": headed(fields("'(1000,1000)f8'")),
    "a dtype in a tuple": headed(fields("('<f8', (2,))")),
    "elements of 2 GiB": headed(fields("'|V2147483647'")),
    "a shape twice": headed("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'shape': (4,)}"),
    "a name too many": headed("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'x': 1}"),
    "a name too few": headed("{'descr': '<f8', 'shape': (3,)}"),
    "letters beyond ASCII": headed(fields("'é'")),
    "a byte of zero": headed(fields() + "\0"),
    "code": headed(fields("__import__('os').system('true')")),
    "nothing": headed(""),
    "nothing behind its magic": b"\x93NUMPY\x01\x00",
    "half a head": headed(fields(), claimed=200),
}


def refused(body: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_head(io.BytesIO(body))
    return str(caught.value)


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_head_is_refused_briefly(body: bytes) -> None:
    assert len(refused(body)) < 400


def test_a_hostile_head_breaks_no_thread_of_a_small_stack() -> None:
    """An evaluated literal nests on the stack of C: 9,900 brackets ended the whole process on one of 512 KiB."""
    messages: list[str] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: messages.extend(map(refused, HOSTILE.values())))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert len(messages) == len(HOSTILE)


@pytest.mark.parametrize("claimed", [2**31 - 1, 2**32 - 1])
def test_a_head_that_claims_gigabytes_takes_none(tmp_path: Path, claimed: int) -> None:
    path = tmp_path / "claims.npy"
    with path.open("wb") as file:
        file.write(headed(fields(), 2, claimed))
        file.truncate(1 << 32)  # a hole: it takes no disk, and reads as zeros
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=f"claims {claimed} bytes"):
            open_npy("claims.npy", [tmp_path.resolve()])
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_uploads_with_hostile_heads_are_the_callers_fault(settings: Settings) -> None:
    with running_api(settings) as api:
        http = api.client()
        for name, body in HOSTILE.items():
            for content in (body, iter([body])):  # with a length and without
                answer = http.post("/v1/datasets", content=content)
                assert answer.status_code == 422, name
                assert answer.headers["content-type"] == "application/problem+json"
        assert not list((settings.datasets_dir() / "incoming").iterdir())


@pytest.mark.parametrize("length", ["0" * 5000 + "5", "9" * 5000, "-5", "+5", "5_0", "٥", "0x5"])
def test_a_length_of_many_digits_is_no_failure_of_the_service(settings: Settings, length: str) -> None:
    with running_api(settings) as api:
        url = httpx.URL(api.url)
        head = f"POST /v1/datasets?dtype=int8 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.tokens['ann']}\r\n"
        with socket.create_connection((url.host, url.port or 80), timeout=60) as wire:
            wire.sendall(f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode() + b"12345")
            assert wire.recv(12)[:10] in (b"HTTP/1.1 2", b"HTTP/1.1 4")


def judged(read: Callable[[], Any]) -> Head | None:
    try:
        return read()  # type: ignore[no-any-return]
    except InvalidInput:
        return None


ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["<f8", "O", "f8,f8"]),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
ALMOST = st.fixed_dictionaries(
    {
        "descr": st.sampled_from(["<f8", ">i4", "|b1", "bfloat16", "<U4", "f8,f8", "(2,)f8", "O"]) | ANY_VALUE,
        "fortran_order": st.booleans() | ANY_VALUE,
        "shape": st.lists(st.integers(-2, 2**65), max_size=4).map(tuple) | ANY_VALUE,
    }
).map(repr)
TEXTS = ALMOST | st.text(st.characters(max_codepoint=255), max_size=200) | ANY_VALUE.map(repr)


@bounded(max_examples=400, deadline=None)
@given(text=TEXTS, version=st.sampled_from([1, 2]))
@example(text=fields(shape="(3L, 4L)"), version=1)
@example(text=fields(shape="(03,)"), version=1)
def test_whatever_is_taken_numpy_takes_alike(text: str, version: int) -> None:
    body = headed(text.encode("latin-1", "replace").decode("latin-1"), version)
    ours = judged(lambda: read_head(io.BytesIO(body)))
    if ours is None:
        return
    file = io.BytesIO(body)
    npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == 1 else npy.read_array_header_2_0
    with pytest.warns() if "L" in text else io.BytesIO():  # of Python 2
        assert (ours.shape, ours.fortran_order, ours.dtype) == read(file)
    assert ours.offset == file.tell()


@bounded(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_behind_the_magic_are_a_failure(body: bytes) -> None:
    judged(lambda: read_head(io.BytesIO(b"\x93NUMPY" + body)))
    judged(lambda: read_head(io.BytesIO(body)))


@bounded(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_numpy_saves_is_read(data: st.DataObject) -> None:
    dtype = DTYPES[data.draw(st.sampled_from([name for name in DTYPES if name != "bfloat16"]))].numpy
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=6, min_side=0, max_side=3))
    array = np.zeros(shape, dtype.newbyteorder(data.draw(st.sampled_from("<>"))), data.draw(st.sampled_from("CF")))
    file = io.BytesIO()
    np.save(file, array)
    file.seek(0)
    head = read_head(file)
    assert (head.shape, head.dtype, head.data_bytes) == (array.shape, array.dtype, array.nbytes)
    assert head.fortran_order == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert np.load(io.BytesIO(file.getvalue())).shape == head.shape


def test_the_longest_head_is_read_in_a_moment() -> None:
    began = time.process_time()
    for filling in (" ", "(", "'", "1", "1,", "'a',", "L", "'descr':", "{"):
        refused(headed((filling * MOST_HEAD_BYTES)[:MOST_HEAD_BYTES]))
        refused(headed(fields(shape="(" + (filling * 9900)[:9900] + ")")))
    assert time.process_time() - began < 2.0
