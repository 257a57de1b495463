"""Folders of objects, and patterns over them."""

import time

import pytest

from tests.support.places.web import WebServer, status
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places.tree import RemoteTree, matches


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("run-*.npy", ["run-1.npy", "run-.npy"], ["run-1.npz", "a/run-1.npy", "run-1.npy/b"]),
        ("a/?[bc]", ["a/xb", "a/xc"], ["a/xd", "a/b", "b/xb"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["a/xx", ".a/x"]),
        ("a/**", ["a/x", "a/b/x"], ["b/x", "a/.x"]),
        ("*", ["x"], [".x", "a/x"]),
        (".*", [".x"], ["x"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "b/c"]),
    ],
)
def test_a_pattern_matches_as_one_of_files_does(pattern: str, matching: list[str], others: list[str]) -> None:
    parts = pattern.split("/")
    assert [key for key in (*matching, *others) if matches(parts, key.split("/"))] == matching


def test_no_pattern_takes_long() -> None:
    started = time.process_time()
    assert not matches(["**", "a"] * 400 + ["b"], ["a"] * 400)
    assert time.process_time() - started < 5.0


def tree(web: WebServer) -> RemoteTree:
    session = web.session()
    return RemoteTree(session, session.places.target(web.url("a.zarr"), ""))


def test_objects_are_read_by_their_names(web: WebServer) -> None:
    web.files |= {"a.zarr/zarr.json": b"{}", "a.zarr/c/0": b"0123456789"}
    folder = tree(web)
    assert folder.size("zarr.json") == 2
    assert folder.size("/zarr.json") == 2
    assert folder.size("none") is None
    assert folder.read("none", 0, None, 100) is None
    assert folder.read("c/0", 0, None, 100) == b"0123456789"
    assert folder.read("c/0", -3, None, 100) == b"789"
    assert folder.read("c/0", 2, 4, 100) == b"23"
    with pytest.raises(InvalidInput, match="at most 5 are read"):
        folder.read("c/0", 0, None, 5)
    assert [path for path, _ in web.asked].count("/a.zarr/c/0") == 1
    assert folder.metadata().bytes_read == 12


def test_no_name_leads_out_of_the_folder(web: WebServer) -> None:
    for name in ("../x", "a/../../x", "a//b", "."):
        with pytest.raises(InvalidInput, match="holds no"):
            tree(web).size(name)
    assert not web.asked


def test_a_fault_of_one_object_is_that_of_the_folder(web: WebServer) -> None:
    folder = tree(web)
    web.behaviours[:] = [status(403)]
    with pytest.raises(InvalidInput, match="may not be read"):
        folder.size("zarr.json")
    assert folder.fault is not None


def test_a_web_server_lists_no_folders(web: WebServer) -> None:
    with pytest.raises(InvalidInput, match="lists no folders"):
        list(tree(web).folders())
