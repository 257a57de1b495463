"""Every preset through the whole service on the CPU, its arrays cut short."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.servers import fresh_database
from tests.support.service import Service, running_service
from warpfold.app.config import Settings
from warpfold.app.reports.report import Part, Report, Verdict
from warpfold.client.api import Client
from warpfold.contract.presets import catalogue
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

SHORT = {"backend": "cpu", "max_n": 2000, "time_limit_s": 0.02}


@pytest.fixture(scope="module")
def service(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service with the CPU as its only slot, and little patience with slots that are not there."""
    root = tmp_path_factory.mktemp("service")
    with fresh_database(shared_postgres) as url:
        settings = Settings(
            database_url=url, redis_url=shared_redis.url, data_dir=root / "warpfold", unavailable_after_s=1
        )
        with running_service(settings, root / "log") as running:
            yield running


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as made:
        yield made


def run(client: Client, **spec: Any) -> Report:
    job = client.wait(client.submit({"kind": "preset", **spec}), timeout_s=270)
    assert job.status == "succeeded", job.error
    return Report.model_validate_json(client.report(job.id, "application/json"))


def test_a_machine_without_a_gpu_runs_what_it_can_and_skips_the_rest_with_the_reason(client: Client) -> None:
    spec = {"kind": "preset", "preset": "p05-task1", "max_n": 2000, "time_limit_s": 0.02}
    job = client.wait(client.submit(spec), timeout_s=270)
    assert job.status == "succeeded", job.error
    skipped = {child.name: child.error for child in job.children or () if child.skipped}
    assert set(skipped.values()) == {"No worker with a GPU serves this queue."}
    assert all(name.endswith(("/custom", "/thrust", ":gpu")) for name in skipped)
    assert len(skipped) == 8
    assert len(job.children or ()) == 16
    report = Report.model_validate_json(client.report(job.id, "application/json"))
    missing = [row for part in report.parts for row in part.compared if row.verdict is Verdict.MISSING]
    assert missing
    assert any("was skipped: No worker with a GPU" in (row.why or "") for row in missing)


@pytest.fixture(scope="module")
def puzzles(client: Client) -> Report:
    return run(client, preset="p34", backend="cpu")


@pytest.fixture(scope="module")
def studies(client: Client) -> Report:
    return run(client, preset="p05", **SHORT)


def test_every_preset_runs_and_has_its_part_in_a_report(puzzles: Report, studies: Report) -> None:
    parts = [part.preset for part in (*puzzles.parts, *studies.parts)]
    assert sorted(parts) == list(catalogue.names())


def test_the_puzzles_give_the_published_values_to_the_bit(puzzles: Report) -> None:
    rows = [row for part in puzzles.parts for row in part.compared]
    assert len(rows) == 6
    assert {row.verdict for row in rows} == {Verdict.AGREES}


def test_every_published_figure_has_its_row_and_every_row_its_verdict(studies: Report) -> None:
    counts = {part.preset: len(part.compared) for part in studies.parts}
    assert counts == {
        "p05-task1-correctness": 12,  # 6 tests, of which each tells of two sums
        "p05-task1-throughput": 32,  # 7 sizes with 2 times, a throughput and a ratio; 4 in the summary
        "p05-task2-scaling": 26,  # 6 sizes with 2 times and 2 ratios; the overhead; the check
        "p05-task3-gpu-vs-cpu": 12,  # 6 sizes of 2 methods
        "p05-task3-mixed": 30,  # 6 sizes of 5 methods
        "p05-task3-normal": 30,
        "p05-task3-pathological": 30,
        "p05-three-numbers": 3,
        "p05-future": 12,
    }


def test_what_was_not_measured_says_why(studies: Report) -> None:
    missing = [row for part in studies.parts for row in part.compared if row.verdict is Verdict.MISSING]
    assert missing
    assert all(row.why and row.measured is None for row in missing)


def test_nothing_of_the_known_data_differs_but_by_numpys_own_order(studies: Report) -> None:
    differing = [row for part in studies.parts for row in part.compared if row.verdict is Verdict.DIFFERS]
    assert all(row.quantity.startswith("numpy") for row in differing), differing


def part(report: Report, preset: str) -> Part:
    (section,) = (part for part in report.parts if part.preset == preset)
    return section


def test_the_three_numbers_are_those_of_the_report(studies: Report) -> None:
    measured = {row.quantity: row.measured for row in part(studies, "p05-three-numbers").compared}
    assert measured == {"(a + b) + c": "0.0", "a + (b + c)": "0.0", "exact": "1.0"}


def test_what_the_cpu_cannot_do_is_left_out_with_the_reason(studies: Report) -> None:
    absent = [job for job in part(studies, "p05-task1-correctness").jobs if job.status is None]
    assert [job.why for job in absent] == ["left out: the job runs on cuda"] * 7


def test_the_report_is_a_page_with_pictures_and_a_text(service: Service, studies: Report) -> None:
    with httpx.Client(headers={"Authorization": f"Bearer {service.token}"}, timeout=300) as http:
        url = f"{service.url}/v1/reports/{studies.job_id}"
        page = http.get(url, headers={"Accept": "text/html"}).text
        text = http.get(url, headers={"Accept": "text/markdown"}).text
        pictures = sum(len(part.charts) for part in studies.parts)
        assert page.count("<svg") == pictures > 5
        links = [line.rsplit("(", 1)[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
        assert len(links) == pictures
        assert http.get(service.url + links[0]).text.startswith("<svg")
        assert http.get(service.url + links[0].replace(".svg", ".png")).content.startswith(b"\x89PNG")
        assert http.get(service.url + links[0].replace(".svg", "x.svg")).status_code == 404
