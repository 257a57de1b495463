"""The table of `benchmarks.latency`: its stages explain the whole."""

import pytest

from benchmarks.latency import STAGES, Times, rows, table


def test_the_stages_of_a_job_add_up_to_its_whole_time() -> None:
    job = Times(10.0, 10.001, 10.005, 10.011, 10.020, 10.024, 10.027, computing_s=0.002)
    assert len(job.stages_ms()) == len(STAGES)
    assert sum(job.stages_ms()) == pytest.approx(27.0)
    shown = dict(rows([job, job], 1.5))
    assert shown["sum of these medians"] == pytest.approx(shown["from request to answer"])
    assert "| computing in the child | 2.00 |" in table([job], 1.5)
