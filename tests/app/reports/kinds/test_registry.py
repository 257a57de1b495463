from typing import get_args

from warpfold.app.reports.kinds.registry import PRESENTATIONS
from warpfold.contract.jobs import JobResult


def test_every_class_of_results_says_which_tables_and_charts_it_has() -> None:
    silent = [kind.__name__ for kind in get_args(JobResult) if kind not in PRESENTATIONS]
    assert not silent, f"app/reports/kinds/registry.py has no row for {', '.join(silent)}"
    assert set(PRESENTATIONS) == set(get_args(JobResult))
