"""A report that was saved as JSON becomes pages on another machine."""

import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.api import Api
from tests.support.measurements import POINT, replace
from tests.support.studies import RUN
from warpfold.app.reports.__main__ import contents
from warpfold.app.reports.report import Report

BENCHMARK = {"kind": "benchmark", "strategies": ["exact"], "sizes": [1000], "caches": ["cold"]}
RESULT = {"cases": 2, "measured": 2, "skipped": 0, "failed": 0, "suspect": 0, "ceiling_gbps": 4650.0, "peak_gbps": None}


def finished_benchmark(api: Api, http: httpx.Client) -> str:
    job_id = str(http.post("/v1/jobs", json=BENCHMARK).json()["id"])
    points = [replace(POINT, n=n, bytes=4 * n) for n in (1000, 10**6)]
    api.finish(api.claim(job_id), {**RESULT, **RUN}, points)
    return job_id


def test_a_benchmark_has_tables_and_pictures_of_its_points(api: Api, http: httpx.Client) -> None:
    url = f"/v1/reports/{finished_benchmark(api, http)}"
    report = Report.model_validate_json(http.get(url).content)
    assert [chart.name for chart in report.charts] == ["throughput-sum-float32-cold", "spread-sum-float32-cold"]
    assert [row[:4] for row in report.tables[0].rows] == [
        ("single_pass", "sum", "float32", "1,000"),
        ("single_pass", "sum", "float32", "1,000,000"),
    ]
    page = http.get(url, headers={"Accept": "text/html"}).text
    assert page.count('<svg role="img"') == 2
    picture = http.get(f"{url}/charts/throughput-sum-float32-cold.svg", params={"theme": "dark"})
    assert (picture.headers["Content-Type"], "#14181d" in picture.text) == ("image/svg+xml", True)


def test_a_saved_report_becomes_markdown_with_its_pictures(api: Api, http: httpx.Client, tmp_path: Path) -> None:
    saved = tmp_path / "speed.json"
    saved.write_bytes(http.get(f"/v1/reports/{finished_benchmark(api, http)}").content)
    command = [sys.executable, "-m", "warpfold.app.reports", str(saved), "--out", str(tmp_path / "pages")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(tmp_path / "pages" / "speed.md")
    page = (tmp_path / "pages" / "speed.md").read_text()
    pictures = sorted((tmp_path / "pages" / "figures").iterdir())
    assert [picture.suffix for picture in pictures] == [".svg", ".svg"]
    assert all(f"(figures/{picture.name})" in page for picture in pictures)


def test_several_reports_get_a_first_page(api: Api, http: httpx.Client) -> None:
    report = Report.model_validate_json(http.get(f"/v1/reports/{finished_benchmark(api, http)}").content)
    page = contents({"one": report, "two": report})
    assert "| [benchmark: sum · float32 · 10³ · exact](one.md) | succeeded |" in page
    assert page.count("](two.md)") == 1
