"""The dashboard and the alerts ask only for what `/metrics` really tells, by labels that it really has."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.api import running_api
from tests.support.measurements import reduced
from warpfold.app.config import Settings
from warpfold.app.jobs import workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.metrics.counters import count_ended
from warpfold.app.metrics.devices import Reading
from warpfold.app.quotas import holds
from warpfold.app.quotas.quota import Limits

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations"
ALERTS = OPERATIONS / "prometheus-alerts.yml"
DASHBOARD = OPERATIONS / "grafana-dashboard.json"

GPU = WorkerInfo("gpu1:cuda:0", "cuda:0", "cuda", "gpu1", 43, "0.1.0", {"name": "NVIDIA H200"})
EVERYTHING = Reading(**dict.fromkeys(Reading.model_fields, 1))

_METRIC = re.compile(r"\b(warpfold_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\bby \(([^)]*)\)")
_ADDED = {"job", "instance"}
"""Labels that Prometheus itself adds."""


@pytest.fixture
def metrics(settings: Settings) -> Mapping[str, set[str]]:
    """The names of all samples of a service in which everything has happened once, and their labels."""
    with running_api(settings) as api:
        http = api.client("root")
        http.put("/v1/quotas/ann", json={"running": 0})
        api.submit()
        api.finish(api.claim(api.submit()), points=[reduced(1.0)])
        api.database.run(workers.report, GPU, "idle", None, 60.0, reading=EVERYTHING)
        api.database.run(count_ended, 10)
        api.database.run(holds.refresh, Limits())
        return _names(http)


def _names(http: httpx.Client) -> Mapping[str, set[str]]:
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(http.get("/metrics").text):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    return labels


def _check(expression: str, metrics: Mapping[str, set[str]]) -> int:
    """How many metrics an expression names; each must exist, with the labels that it is asked for."""
    named = _METRIC.findall(expression)
    for name, matchers in named:
        assert name in metrics, f"{name} is not at /metrics: {expression}"
        asked = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", matchers))
        assert asked <= metrics[name] | _ADDED, f"{name} has no {asked - metrics[name]}: {expression}"
    grouped = {label.strip() for labels in _GROUPED.findall(expression) for label in labels.split(",")}
    known = set().union(*(metrics[name] for name, _ in named)) if named else set()
    assert grouped <= known | _ADDED, f"nothing has {grouped - known}: {expression}"
    return len(named)


def _panels() -> Iterator[dict[str, Any]]:
    yield from json.loads(DASHBOARD.read_text())["panels"]


def test_the_dashboard_asks_for_what_is_there(metrics: Mapping[str, set[str]]) -> None:
    asked = set()
    for panel in _panels():
        for target in panel["targets"]:
            assert _check(target["expr"], metrics) >= 1, panel["title"]
            asked |= {name.removesuffix("_bucket") for name, _ in _METRIC.findall(target["expr"])}
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert legend <= set(re.findall(r"\w+", " ".join(_GROUPED.findall(target["expr"])))), panel["title"]
    assert len(asked) >= 15


def test_its_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in _panels():
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells, panel["title"]
        cells |= own
    assert max(x for x, _ in cells) < 24


def test_the_alerts_ask_for_what_is_there(metrics: Mapping[str, set[str]]) -> None:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    named = 0
    for rule in group["rules"]:
        named += _check(rule["expr"], metrics)
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["expr"].count("(") == rule["expr"].count(")")
    assert named >= 10


def test_a_metric_that_is_not_there_is_found_out(metrics: Mapping[str, set[str]]) -> None:
    for wrong in ("warpfold_jobs_done_total", 'warpfold_jobs{kind="reduce"}', "sum by (owner) (warpfold_jobs)"):
        with pytest.raises(AssertionError):
            _check(wrong, metrics)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed here")
def test_prometheus_itself_can_read_the_alerts_and_the_panels(tmp_path: Path) -> None:
    asked = [target["expr"].replace("$__rate_interval", "5m") for panel in _panels() for target in panel["targets"]]
    rules = [{"alert": f"panel{index}", "expr": expression} for index, expression in enumerate(asked)]
    panels = tmp_path / "panels.yml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", str(ALERTS), str(panels)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
