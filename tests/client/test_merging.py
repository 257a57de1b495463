"""Tables of exact states through the client: jobs, files and tables are merged to one frame or array."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest

from warpfold.client import Client, JobFailed, MergeResult

RNG = np.random.default_rng(5)
SALES = pyarrow.table(
    {
        "region": ["south", "north", "south", None, "north"],
        "price": [1e16, 2.5, 1.0, 7.0, -2.5],
        "sold": [1, 2, 3, 4, 5],
    }
)


def test_groups_of_jobs_files_and_tables_merge_to_those_of_the_whole(client: Client, tmp_path: Path) -> None:
    whole = client.groupby(SALES, "region", dropna=False).agg({"price": ["sum", "var"], "sold": "mean"})
    parts = [
        client.groupby(SALES.slice(start, 2), "region", dropna=False, states=True).agg(
            {"price": ["sum", "var"], "sold": "mean"}
        )
        for start in (0, 2, 4)
    ]
    pq.write_table(parts[1], tmp_path / "part.parquet")
    merged = client.merge_tables([parts[0], tmp_path / "part.parquet", parts[2]])
    assert merged.equals(whole)
    kept = client.merge_tables(parts[:2], states=True, sort=False)
    assert kept["region"].to_pylist() == ["north", "south", None]
    assert client.merge_tables([kept, parts[2]]).equals(whole)


def test_values_of_an_array_merge_to_an_array(client: Client) -> None:
    array = RNG.normal(size=(7, 12_000)) * 1e10
    jobs = [client.submit_reduce(part, axis=0, states=True) for part in (array[:3], array[3:])]
    merged = client.merge_tables([jobs[0], jobs[1].id])
    assert merged.tobytes() == client.reduce(array, axis=0).tobytes()
    small = [client.submit_reduce(part[:, :6], "std", axis=0, states=True) for part in (array[:3], array[3:])]
    job = client.submit({"kind": "merge", "tables": [{"type": "artefact", "job_id": each.wait().id} for each in small]})
    assert client.merged(job).tolist() == client.reduce(array[:, :6], "std", axis=0).tolist()
    assert isinstance(client.result(job), MergeResult)
    with pytest.raises(TypeError, match="merges no tables"):
        client.merged(jobs[0])


def test_a_frame_without_states_is_refused(client: Client) -> None:
    with pytest.raises(JobFailed, match="its schema says nothing about states"):
        client.merge_tables([SALES])
