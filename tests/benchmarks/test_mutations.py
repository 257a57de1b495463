"""The seed files of the mutations are sound, and a few mutations of each kill nothing."""

import json
import random
import subprocess
import sys
from pathlib import Path

from benchmarks.mutations import MOST_MIB, SEEDS, mutated


def test_a_mutation_is_the_same_for_the_same_draw_and_differs_from_the_file() -> None:
    whole = bytes(range(256)) * 8
    drawn = [mutated(whole, random.Random(f"34 {number}")) for number in range(50)]
    assert drawn == [mutated(whole, random.Random(f"34 {number}")) for number in range(50)]
    assert sum(each != whole for each in drawn) > 45


def test_a_few_mutations_of_each_file_end_no_child(tmp_path: Path) -> None:
    into = tmp_path / "mutations.json"
    count = str(2 * len(SEEDS))
    subprocess.run(
        [sys.executable, "-m", "benchmarks.mutations", "--mutations", count, "--into", str(into)],
        check=True,
        timeout=300,
    )
    rows = json.loads(into.read_text())
    assert [row["file"] for row in rows] == list(SEEDS)
    assert len(SEEDS) == 30
    for row in rows:
        assert not [name for name in row if name.startswith(("death", "unforeseen"))]
        assert row["most_mib"] <= MOST_MIB
        assert not (row["checked"] and "changed" in row)
