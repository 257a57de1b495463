"""`python -m warpfold.worker.doctor` prints a line of JSON for each finding, and exits with 1 if a part is broken."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from pydantic import ValidationError
from pydantic_settings import SettingsError

from warpfold.app.config import Settings, faults_of, unknown_variables
from warpfold.worker.doctor.finding import Finding, Health, broken, poor
from warpfold.worker.doctor.gpu import look_at_gpus
from warpfold.worker.doctor.machine import look_at_machine
from warpfold.worker.doctor.servers import look_at_servers
from warpfold.worker.doctor.settings import look_at_settings


def examine(settings: Settings) -> Iterator[Finding]:
    """All findings, the quick ones first."""
    yield from look_at_settings(settings)
    yield from look_at_machine(settings)
    yield from look_at_servers(settings)
    yield from look_at_gpus()


def main() -> int:
    """Print each finding as soon as its check is done."""
    verdicts = []
    for finding in _findings():
        verdicts.append(finding.verdict)
        print(json.dumps(asdict(finding), ensure_ascii=False), flush=True)
    return int(Health.BROKEN in verdicts)


def _findings() -> Iterator[Finding]:
    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        for fault in faults_of(error):
            yield broken("settings", fault, "correct it; `warpfold settings` lists all settings")
        return
    for fault in unknown_variables():
        yield poor("settings", fault, "correct its name, or remove it")
    yield from examine(settings)


if __name__ == "__main__":
    sys.exit(main())
