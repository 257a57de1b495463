import hashlib
import io
import re
from collections.abc import Callable

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.window import Window

Windows = Callable[[str | None], Window]


def parquet(seed: int) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"price": [1.5, None, float(seed)], "region": ["EU", "US", "EU"]}), file)
    return file.getvalue()


def sent(window: Window, content: bytes, name: str) -> str:
    answer = window.post("/datasets", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/datasets/{hashlib.sha256(content).hexdigest()}"
    return answer.headers["Location"]


def test_a_file_is_uploaded_shown_renamed_and_deleted(ann: Window) -> None:
    page = sent(ann, parquet(1), "march <b>.parquet")
    shown = ann.get(page).text
    assert "march &lt;b&gt;.parquet" in shown
    assert "Parquet" in shown
    assert page in ann.get("/datasets").text
    assert ann.post(f"{page}/name", data={"name": " april "}).headers["Location"] == page
    assert "<h1>april</h1>" in ann.get(page).text
    assert ann.post(f"{page}/delete").headers["Location"] == "/datasets"
    assert ann.get(page).status_code == 404


def test_what_is_in_it_is_listed_and_leads_to_a_form_that_reduces_it(ann: Window) -> None:
    page = sent(ann, parquet(2), "sales.parquet")
    inside = ann.get(f"{page}/contents").text
    [link] = re.findall(r'href="(/jobs/new[^"]*)"', inside)
    assert "float64" in inside
    form = ann.get(link.replace("&amp;", "&")).text
    for name, value in (("id", page.rpartition("/")[2]), ("name", "sales.parquet"), ("column", "price")):
        assert re.search(rf'name="source.{name}" value="{value}"', form), name
    assert "The server would accept this" in form


def test_a_damaged_file_says_why_nothing_of_it_is_shown(ann: Window) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, a=np.arange(1000))
    page = sent(ann, file.getvalue()[:-30], "cut.npz")
    inside = ann.get(f"{page}/contents")
    assert (inside.status_code, 'class="error"' in inside.text) == (200, True)


def test_the_jobs_that_read_it_are_listed(ann: Window) -> None:
    page = sent(ann, parquet(3), "read.parquet")
    assert "No job that you see has read it" in ann.get(page).text
    source = {"source.type": "dataset", "source.id": page.rpartition("/")[2], "source.column": "price"}
    job = ann.post("/jobs/new", data={"kind": "reduce", "op": "max", **source}).headers["Location"]
    assert f'href="{job}"' in ann.get(page).text


@pytest.mark.parametrize("path", ["", "/contents", "/name", "/delete"])
def test_a_private_file_is_its_owner_s(window: Windows, ann: Window, path: str) -> None:
    page = sent(ann, parquet(len(path) + 10), "own.parquet")
    bob = window("bob")
    answer = bob.get(page + path) if path in ("", "/contents") else bob.post(page + path)
    assert answer.status_code == 404
    assert page not in bob.get("/datasets").text


def test_a_viewer_and_another_site_send_nothing(window: Windows, ann: Window) -> None:
    vera = window("vera")
    assert "data-upload" not in vera.get("/datasets").text
    assert vera.post("/datasets", params={"name": "a.npy"}, content=b"1").status_code == 403
    forged = ann.post("/datasets", params={"name": "a.npy"}, content=b"1", headers={"Origin": "http://elsewhere"})
    assert forged.status_code == 403


def test_what_is_no_file_of_a_known_format_is_refused_in_a_sentence(ann: Window) -> None:
    answer = ann.post("/datasets", params={"name": "a.bin"}, content=b"\x00\x01", headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert "<html" not in answer.text
