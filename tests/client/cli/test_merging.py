"""Merging of tables of states on the command line."""

import json

import numpy as np
from pyarrow import parquet

from tests.support.shell import Shell

CSV = "region,price\nsouth,1e16\nnorth,2.5\nsouth,2.0\n"


def job_of(printed: str) -> str:
    """The id in the line that says which job has the states."""
    line = next(line for line in printed.splitlines() if "has the states" in line)
    return line.split()[1]


def test_groups_of_jobs_and_of_shards_made_here_are_merged(shell: Shell) -> None:
    (shell.folder / "sales.csv").write_text(CSV)
    words = ("reduce", "sales.csv", "--by", "region", "--column", "price", "--states")
    remote = shell.run(*words)
    assert remote.out == "region\tprice_sum\nnorth\t2.5\nsouth\t1.0000000000000002e+16\n"
    here = Shell(shell.folder).run(*words, "--local", "-o", "shard.parquet")
    assert (here.code, here.out) == (0, "")
    merged = shell.run("merge", job_of(remote.err), "shard.parquet")
    assert merged.out == "region\tprice_sum\nnorth\t5.0\nsouth\t2.0000000000000004e+16\n"
    assert merged.err.startswith("2 groups of 2 tables; exact, correctly rounded; ")
    shell.run("merge", "shard.parquet", "--states", "-o", "out.parquet")
    assert parquet.read_table(shell.folder / "out.parquet").column_names[-1] == "price_sum_state"
    assert json.loads(shell.run("merge", "shard.parquet", "--json").out)["result"]["groups"] == 2


def test_values_of_an_array_are_merged(shell: Shell) -> None:
    np.save(shell.folder / "a.npy", np.array([[0.1, 1e16], [0.2, 1.0]]))
    job = job_of(shell.run("reduce", "a.npy", "--axis", "0", "--states").err)
    merged = shell.run("merge", job, job[:13])
    assert merged.out == "0.6000000000000001\n2e+16\n"
    shell.run("merge", job, "-o", "out.npy")
    assert np.load(shell.folder / "out.npy").tolist() == [0.1 + 0.2, 1e16]


def test_states_need_a_shape_and_files_a_known_name(shell: Shell) -> None:
    np.save(shell.folder / "a.npy", np.ones(3))
    for words, printed in (
        (("reduce", "a.npy", "--states"), "needs --axis or --segments without --local, or --by"),
        (("merge", "a.npy", "-o", "out.txt"), "a name should end in"),
    ):
        shown = shell.run(*words)
        assert shown.code == 2
        assert printed in " ".join(shown.err.split())
