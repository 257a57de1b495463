"""Runs every preset on this machine and writes its report: `python -m benchmarks.presets --to docs/reports`.

Starts `warpfold serve` in a temporary folder and submits the presets to it one after the other; those joined by `+` run
together, on whatever slots there are. `--json` keeps the reports as the service gives them: where there is no time to
draw, `python -m warpfold.app.reports` makes pages of them later.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpfold.app.reports.__main__ import contents, write
from warpfold.app.reports.report import Report
from warpfold.client.api import Client
from warpfold.client.demo.service import running_service
from warpfold.client.errors import WaitedTooLong
from warpfold.contract.presets import catalogue


def run(
    client: Client, presets: Sequence[str], changes: Mapping[str, Any], within_s: float | None
) -> Iterator[tuple[str, Report]]:
    """Presets that run together, each with its report as it ends, whatever became of its jobs; one that takes longer
    than `within_s` is cancelled, and its report has what was done by then."""
    started = time.monotonic()
    jobs = [(preset, client.submit({"kind": "preset", "preset": preset, **changes})) for preset in presets]
    for preset, job in jobs:
        try:
            ended = client.wait(job, timeout_s=within_s)
        except WaitedTooLong:
            ended = client.wait(client.cancel(job.id))
        print(f"{preset}: {ended.status} after {time.monotonic() - started:.1f} s. {ended.error or ''}", flush=True)
        yield preset, Report.model_validate_json(client.report(job.id, "application/json"))


def main() -> int:
    """Run the presets, and return how many did not succeed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", help="presets or groups, or several as a+b; by default all, one by one")
    parser.add_argument("--json", type=Path, help="folder for the reports as JSON")
    parser.add_argument("--to", type=Path, help="folder for the reports as Markdown with their pictures")
    parser.add_argument("--slots", help="as of `warpfold serve`; by default every GPU and the CPU")
    parser.add_argument("--backend", choices=("cpu", "cuda"))
    parser.add_argument("--max-n", type=int, help="leave longer arrays out")
    parser.add_argument("--time-limit", type=float, help="seconds to sample one point, where a job has more")
    parser.add_argument("--within", type=float, help="seconds after which a preset is cancelled")
    arguments = parser.parse_args()
    changes = {"backend": arguments.backend, "max_n": arguments.max_n, "time_limit_s": arguments.time_limit}
    chosen = {name: value for name, value in changes.items() if value is not None}
    options = ["--slots", arguments.slots] if arguments.slots else []
    failed, pages = 0, dict[str, Report]()
    with (
        tempfile.TemporaryDirectory(prefix="wf-") as root,
        running_service(Path(root), *options) as service,
        Client(service.url, service.token) as client,
    ):
        stages = [stage.split("+") for stage in arguments.presets or catalogue.names()]
        for preset, report in (done for stage in stages for done in run(client, stage, chosen, arguments.within)):
            failed += report.status != "succeeded"
            if arguments.json:
                arguments.json.mkdir(parents=True, exist_ok=True)
                (arguments.json / f"{preset}.json").write_text(report.model_dump_json())
            if arguments.to:
                write(report, arguments.to, preset, png=False)
                pages[preset] = report
                (arguments.to / "README.md").write_text(contents(pages), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
