"""Jobs, results and lists as a notebook shows them."""

from warpfold.client import (
    Client,
    ReduceResult,
)


def test_notebooks_show_tables(client: Client) -> None:
    job = client.submit({"kind": "reduce", "source": {"type": "values", "values": [1, 2]}}).wait()
    assert job.result is not None
    assert isinstance(job.result, ReduceResult)
    for shown in (job._repr_html_(), job.result._repr_html_(), client.results(limit=3)._repr_html_()):
        assert shown.startswith("<table>")
    assert "<td>3</td>" in job._repr_html_()
