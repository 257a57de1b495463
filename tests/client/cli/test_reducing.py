import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.support.service import Service
from tests.support.shell import Shell


def test_a_file_is_reduced_to_its_exact_sum(shell: Shell) -> None:
    done = shell.spawn("reduce", "samples.npy")
    assert done.out == "1.0\n"
    assert done.err.startswith("sum of 3 elements as float64, exact, correctly rounded; ")
    assert done.err.endswith("; 0x1.0000000000000p+0\n")


def test_a_large_file_is_uploaded(shell: Shell) -> None:
    done = shell.run("reduce", "large.npy", "--op", "mean", "--json")
    job = json.loads(done.out)
    assert job["spec"]["source"]["type"] == "dataset"
    assert job["result"]["value"] == 9999.5
    listed = shell.run("dataset", "list", "--json").out.splitlines()
    assert job["spec"]["source"]["id"] in [json.loads(line)["id"] for line in listed]


def test_two_files_make_a_dot_product(shell: Shell) -> None:
    assert shell.run("reduce", "samples.npy", "--op", "dot", "--other", "samples.npy").out == "2e+32\n"


def test_weights_and_a_second_file_are_named_and_sent_or_read_here(shell: Shell) -> None:
    np.save(shell.folder / "weights.npy", np.arange(20_000) % 7)
    words = ("reduce", "large.npy", "--op", "mean", "--weights", "weights.npy")
    sent = shell.run(*words).out
    assert sent == shell.run(*words, "--local").out
    large = np.load(shell.folder / "large.npy")
    assert float(sent) == pytest.approx(np.average(large, weights=np.arange(20_000) % 7), rel=1e-13)
    assert shell.run("reduce", "large.npy", "--op", "corr", "--other", "large.npy").out == "1.0\n"


def test_without_a_service_the_answer_is_the_same(shell: Shell) -> None:
    alone = Shell(shell.folder)
    here = alone.run("reduce", "large.npy", "--op", "norm2", "--local", "--json")
    assert here.code == 0, here
    remote = json.loads(shell.run("reduce", "large.npy", "--op", "norm2", "--json").out)["result"]
    local = json.loads(here.out)
    read = local.pop("input")
    assert {name: remote[name] for name in local} == local
    assert [(file["name"], file["size"]) for file in read["files"]] == [
        ("large.npy", (shell.folder / "large.npy").stat().st_size)
    ]


@pytest.mark.parametrize("fields", [(), ("--segments", "100")])
def test_the_hash_of_a_file_is_the_same_with_and_without_a_service(shell: Shell, fields: tuple[str, ...]) -> None:
    """A large file is uploaded, and named by its hash; small ones travel in the request, and are no file any more."""
    digest = sha256((shell.folder / "large.npy").read_bytes()).hexdigest()
    words = ("reduce", "large.npy", "--fingerprint", *fields)
    here = shell.run(*words, "--local", "--json")
    remote = shell.run(*words, "--json")
    for read in (json.loads(here.out)["input"], json.loads(remote.out)["result"]["input"]):
        assert read["fingerprint"] == read["files"][0]["sha256"] == digest
    if not fields:
        assert f"SHA-256 {digest}" in shell.run(*words).err
        assert f"SHA-256 {digest}" in shell.run(*words, "--local").err
        assert "SHA-256" not in shell.run("reduce", "large.npy").err


def test_what_cannot_be_reduced_is_said(shell: Shell) -> None:
    (shell.folder / "text.npy").write_text("1, 2, 3")
    (shell.folder / "half.npy").write_bytes((shell.folder / "large.npy").read_bytes()[:-1])
    np.save(shell.folder / "words.npy", np.array(["a"]))
    np.save(shell.folder / "many.npy", np.full(2000, 2**31 - 1))
    for words, code, expected in (
        (("reduce", "missing.npy"), 2, "missing.npy"),
        (("reduce", "text.npy"), 2, "is not a whole .npy file"),
        (("reduce", "half.npy"), 2, "truncated"),
        (("reduce", "words.npy"), 2, "<U1"),
        (("reduce", "samples.npy", "--op", "sun"), 2, "--op: unknown op 'sun'; did you mean 'sum'?"),
        (("reduce", "samples.npy", "large.npy", "--op", "sun"), 2, "unknown op 'sun'; did you mean 'sum'?"),
        (("reduce", "samples.npy", "--op", "sum", "--q", "0.5"), 2, "--q: sum takes no q"),
        (("submit", "samples.npy", "large.npy", "--op", "sun"), 2, "unknown op 'sun'; did you mean 'sum'?"),
        (("reduce", "many.npy", "--op", "prod", "--local"), 2, "an integer of 62000 bits, longer than"),
        (("reduce", "samples.npy", "--local", "--backend", "cuda"), 2, "computes on the CPU"),
        (("reduce", "samples.npy", "--op", "dot"), 4, "other"),
    ):
        done = shell.run(*words)
        assert done.code == code, done
        # A panel may break the line.
        assert expected.replace(" ", "") in done.err.replace("\n", "").replace("│", "").replace(" ", ""), done


def test_no_service_is_a_code_of_its_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    alone = Shell(tmp_path)
    done = alone.run("reduce", "x.npy")
    assert (done.code, "warpfold login URL" in done.err) == (3, True)
    alone.environment = {"WARPFOLD_URL": "http://127.0.0.1:9", "WARPFOLD_TOKEN": "wf_x"}
    done = alone.run("--patience", "0", "reduce", "x.npy")
    assert (done.code, "no answer from http://127.0.0.1:9" in done.err) == (3, True)
    assert done.out == ""


def test_several_files_have_one_value_together(service: Service, shell: Shell) -> None:
    parts = {"0.npy": [1e16, 2.0], "1.npy": [3.0], "2.npy": [-1e16, 0.5]}
    for name, part in parts.items():
        np.save(shell.folder / f"part-{name}", np.array(part))
        np.save(service.settings.data_roots[0] / f"told-{name}", np.array(part))
    names = sorted(f"part-{name}" for name in parts)
    for where in ((), ("--local",)):
        assert shell.run("reduce", "part-*.npy", "--as-one", *where).out == "5.5\n"
        assert shell.run("reduce", *names[::-1], "--as-one", "--op", "argmax", *where).out == "3\n"
        shown = json.loads(shell.run("reduce", "part-*.npy", "--as-one", "--json", *where).out)
        read = shown.get("result", shown)["input"]
        assert [(file["name"], file["elements"]) for file in read["files"]] == list(zip(names, (2, 1, 2), strict=True))
    assert shell.run("reduce", "--server", "told-*.npy").out == "5.5\n"
    assert shell.run("reduce", "--server", "told-2.npy", "told-0.npy", "--as-one").out == "2.5\n"
    assert (
        shell.run("reduce", "part-0.npy", "--op", "sum,max,count").out
        == "sum\tmax\tcount\n1.0000000000000002e+16\t1e+16\t2\n"
    )


def test_several_ops_and_columns_are_a_line_in_one_pass(shell: Shell) -> None:
    (shell.folder / "1.csv").write_text('x,"y,z"\n1,2.5\n,4\n')
    (shell.folder / "2.csv").write_text('x,"y,z"\n9007199254740993,1.5\n')
    line = "x_sum\tx_max\ty,z_sum\ty,z_max\n9007199254740994\t9007199254740993\t8.0\t4.0\n"
    for where in ((), ("--local",)):
        words = ("reduce", "1.csv", "2.csv", "--as-one", "--column", 'x,"y,z"', "--op", "sum,max")
        assert shell.run(*words, *where).out == line
        assert shell.run("reduce", "*.csv", "--as-one", "--by", "x", "--column", "x", *where).out.startswith("x\tx_sum")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a.npy", "b.npy", "--as-one"), "b.npy holds float32, and a.npy float64"),
        (("x.csv", "a.npy", "--as-one", "--column", "x"), "a.npy is not a table but .npy"),
        (("x.csv", "y.csv", "--as-one", "--column", "x"), "y.csv holds no column 'x'"),
        (("x.csv", "y.csv", "--as-one", "--by", "x", "--column", "x"), "y.csv holds no column 'x'"),
        (("x.csv", "y.csv", "--op", "sum,max", "--column", "x"), "takes one file, or several with --as-one"),
        (("x.csv", "--op", "sum,max", "--axis", "0"), "takes one table, and no other shape"),
        (("a.npy", "s3://bucket/*.npy", "--as-one"), "a pattern of files on the server, or of URLs, is one array"),
        (("a.npy", "--server", "--local"), "the service reduces a URL or a file of its own"),
        (("a.npy", "--as-one", "--other", "b.npy", "--op", "dot"), "takes no --other"),
    ],
)
def test_files_that_are_not_one_are_refused_by_name_before_they_are_sent(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    np.save(tmp_path / "b.npy", np.ones(3, np.float32))
    (tmp_path / "x.csv").write_text("x\n1\n")
    (tmp_path / "y.csv").write_text("y\n1\n")
    nowhere = Shell(tmp_path, {"WARPFOLD_URL": "http://127.0.0.1:9", "WARPFOLD_TOKEN": "wf_x"})
    refused = nowhere.run("--patience", "0", "reduce", *words)
    assert (refused.code, message in _joined(refused.err)) == (2, True), refused


def test_a_column_is_reduced_here_and_by_the_service(shell: Shell) -> None:
    table = pyarrow.table({"price": [2**53 + 1, None, 3], "region": ["EU", "EU", "US"]})
    pyarrow.parquet.write_table(table, shell.folder / "sales.parquet")
    (shell.folder / "sales.tsv").write_text("price\tregion\n9007199254740993\tEU\n\tEU\n3\tUS\n")
    only = '{"op": "==", "column": "region", "value": "EU"}'
    for name in ("sales.parquet", "sales.tsv"):
        for where in ((), ("--local",)):
            done = shell.run("reduce", name, "--column", "price", "--filter", only, *where)
            assert done.out == "9007199254740993\n", done
            assert "1 null left out" in done.err
    refused = shell.run("reduce", "sales.parquet", "--column", "prise", "--local")
    assert (refused.code, "did you mean 'price'" in _joined(refused.err)) == (2, True)
    refused = shell.run("reduce", "sales.parquet", "--op", "argmin", "--column", "price", "--local")
    assert (refused.code, "holds a null in 'price'" in _joined(refused.err)) == (2, True)
    refused = shell.run("reduce", "sales.parquet", "--filter", "{")
    assert (refused.code, "is not JSON" in _joined(refused.err)) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sales.csv", "--column", "prise"), "sales.csv holds no column 'prise'; did you mean 'price'?"),
        (("sales.csv", "--column", "region"), "holds column 'region' as string"),
        (("two.npz", "--array", "temp"), "two.npz holds no array 'temp'; it holds 'a', 'b'"),
    ],
)
def test_what_a_file_lacks_is_said_before_it_is_sent(shell: Shell, words: tuple[str, ...], message: str) -> None:
    (shell.folder / "sales.csv").write_text("region,price\nEU,1\n")
    np.savez(shell.folder / "two.npz", a=np.ones(2), b=np.ones(2))
    nowhere = Shell(shell.folder, {"WARPFOLD_URL": "http://127.0.0.1:9", "WARPFOLD_TOKEN": "wf_x"})
    refused = nowhere.run("reduce", *words)
    assert (refused.code, message in _joined(refused.err)) == (2, True)


def test_what_this_machine_cannot_read_is_left_to_the_service(shell: Shell) -> None:
    (shell.folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    done = shell.run("reduce", "broken.parquet", "--column", "price")
    assert (done.code, "is not a whole Parquet file" in done.err) == (1, True)


def test_the_dtype_of_a_column_of_text_may_be_named(shell: Shell) -> None:
    (shell.folder / "sales.csv").write_text("price\n18446744073709551615\n")
    for where in ((), ("--local",)):
        assert shell.run("reduce", "sales.csv", *where).code != 0
        done = shell.run("reduce", "sales.csv", "--dtype", "uint64", *where)
        assert done.out == "18446744073709551615\n", done
    for words in (("samples.npy",), ("sales.csv", "--by", "price", "--column", "price"), ("*.csv",)):
        refused = shell.run("reduce", *words, "--dtype", "uint64")
        assert (refused.code, "is for one column of one array" in _joined(refused.err)) == (2, True)


def test_an_empty_name_is_no_folder(shell: Shell) -> None:
    refused = shell.run("reduce", "", "--local")
    assert (refused.code, "is an empty name" in _joined(refused.err)) == (2, True)


def test_a_damaged_hierarchy_is_named(shell: Shell) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(shell.folder / "x.zarr"), mode="w")
    group.create_array("temp", shape=(4,), dtype="f8", chunks=(4,))[...] = [1, 2, 3, 4]
    refused = shell.run("reduce", "x.zarr", "--array", "tmp", "--local")
    assert "x.zarr holds no array 'tmp'; did you mean 'temp'?" in _joined(refused.err)
    (shell.folder / "x.zarr" / "temp" / "c" / "0").write_bytes(b"junk")
    refused = shell.run("reduce", "x.zarr", "--local")
    assert (refused.code, "x.zarr holds 'temp' that cannot be decoded" in _joined(refused.err)) == (2, True)


def test_a_zarr_hierarchy_and_an_hdf5_file_are_shown_and_reduced(shell: Shell) -> None:
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    group = zarr.open_group(str(shell.folder / "x.zarr"), mode="w")
    group.create_array("run/temp", shape=(4,), dtype="i4", chunks=(2,))[...] = [1, 2, 3, 4]
    with h5py.File(shell.folder / "x.h5", "w") as file:
        file["run/temp"] = np.array([1, 2, 3, 4], np.int32)
    for name in ("x.zarr", "x.h5"):
        (row,) = json.loads(shell.run("inspect", name, "--json").out)
        assert (row["name"], row["dtype"], row["shape"]) == ("run/temp", "int32", [4])
        done = shell.run("reduce", name, "--array", "run/temp", "--select", '[{"start": 1}]', "--local")
        assert done.out == "9\n", done
    job = json.loads(shell.run("reduce", "x.zarr", "--array", "run/temp", "--json").out)
    assert (job["result"]["value"], job["spec"]["source"]["name"]) == (10, "x.zarr")
    refused = shell.run("reduce", "x.zarr", "--array", "run/temp", "--axis", "3")
    assert "FILE: x.zarr: there is no axis 3" in _joined(refused.err), "the folder is named, and no archive of it"
    (shell.folder / "empty").mkdir()
    refused = shell.run("reduce", "empty")
    assert (refused.code, "is a folder, but not a Zarr hierarchy" in _joined(refused.err)) == (2, True)


def test_absent_chunks_are_said_or_refused_and_attributes_can_be_ignored(shell: Shell) -> None:
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(shell.folder / "x.zarr"), shape=(4,), chunks=(2,), dtype="i2", fill_value=7)
    stored[:2] = [1, -9]
    stored.attrs.update({"_FillValue": -9, "scale_factor": 0.5})
    for where in ("--local",), ():
        done = shell.run("reduce", "x.zarr", *where)
        assert (done.out, "; 1 null left out; 1 of 2 chunks absent, read as fill value 7" in done.err) == (
            "7.5\n",
            True,
        )
        assert shell.run("reduce", "x.zarr", "--stored", *where).out == "6\n"
    assert json.loads(shell.run("reduce", "x.zarr", "--local", "--json").out)["notice"].startswith("1 of 2 chunks")
    lines = shell.run("reduce", "x.zarr", "--stored", "--segments", "2", "--local")
    assert (lines.out, "; 1 of 2 chunks absent" in lines.err) == ("-8\n14\n", True)
    refused = shell.run("reduce", "x.zarr", "--missing-chunks", "raise", "--local")
    assert (refused.code, "without its chunk 'c/1', and missing_chunks is raise" in _joined(refused.err)) == (2, True)


def test_partitions_are_for_a_cluster(shell: Shell) -> None:
    for words in ((), ("--backend", "cpu"), ("--local",), ("--by", "k", "--column", "x")):
        refused = Shell(shell.folder).run("reduce", "samples.npy", "--partitions", "3", *words)
        assert (refused.code, "--partitions: needs --backend dask" in _joined(refused.err)) == (2, True), refused
    refused = shell.run("reduce", "samples.npy", "--op", "prod", "--backend", "dask", "--partitions", "3")
    assert (refused.code, "refused: op: prod is not combined from partitions" in refused.err) == (4, True), refused


def _joined(panel: str) -> str:
    """What a panel says, without its frame and its line breaks."""
    return " ".join(panel.replace("│", " ").split())


def test_a_changed_bit_of_a_stored_member_is_named_here_too(shell: Shell) -> None:
    array = np.arange(1000.0)
    np.savez(shell.folder / "x.npz", x=array)
    assert shell.run("reduce", "x.npz", "--local").out == "499500.0\n"
    content = bytearray((shell.folder / "x.npz").read_bytes())
    content[content.index(array.tobytes()) + 4000] ^= 1
    (shell.folder / "x.npz").write_bytes(content)
    for more in ((), ("--axis", "0"), ("--op", "dot", "--other", "x.npz")):
        refused = shell.run("reduce", "x.npz", "--local", *more)
        assert (refused.code, "x.npz is damaged: the checksum of 'x'" in _joined(refused.err)) == (2, True), refused


def test_a_spec_in_place_of_an_array_is_sent_to_the_command_that_takes_it(shell: Shell) -> None:
    (shell.folder / "job.json").write_text('{"kind": "reduce"}')
    refused = shell.run("reduce", "job.json", "--local")
    assert (refused.code, "`warpfold submit` takes specs" in _joined(refused.err)) == (2, True), refused
