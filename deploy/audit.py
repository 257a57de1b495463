"""`make audit` lists the packages of the service, and says whether any of them has a published vulnerability.

It runs in an environment of its own (requirements-audit.lock). For each lock it writes a CycloneDX SBOM, and checks
every pinned version against the advisories of PyPI, by pip-audit. The answer counts only if PyPI also reports an old
package that has well-known advisories, and only for the packages that were not skipped.

The exit code is 0 if no advisory applies, and 1 if some do, which are then listed. It is 3 if the advisories cannot be
reached or do not cover all packages, so that nothing is known; the SBOMs are written all the same.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCKS = ("requirements.lock", "requirements-cuda13.lock", "requirements-cuda12.lock", "requirements-dev.lock")
CANARY = "jinja2==2.10"
"""A package with PYSEC-2019-217 and other advisories. A service that reports none of them knows none at all."""

CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3
_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Audit:
    """The answer of a service of advisories: the number of packages, the names of those that it skipped, and a line for
    each vulnerability."""

    packages: int
    skipped: tuple[str, ...]
    vulnerabilities: tuple[str, ...]

    @classmethod
    def of(cls, report: dict[str, Any]) -> "Audit":
        """Read the JSON of pip-audit."""
        rows = report["dependencies"]
        vulnerabilities = [
            f"{row['name']} {row['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'none yet'}"
            for row in rows
            for flaw in row.get("vulns", ())
        ]
        return cls(len(rows), tuple(row["name"] for row in rows if "skip_reason" in row), tuple(vulnerabilities))


def judge(canary: Audit | None, audits: dict[str, Audit | None]) -> tuple[int, list[str]]:
    """The exit code, and the lines to print. None stands for a service that did not answer."""
    messages = []
    for lock, audit in audits.items():
        if audit is not None:
            messages += [f"{lock}: {line}" for line in audit.vulnerabilities]
    if messages:
        return VULNERABLE, messages
    if canary is None or None in audits.values():
        return UNKNOWN, ["the service of advisories cannot be reached from here: nothing is known"]
    if not canary.vulnerabilities:
        return UNKNOWN, [f"the service knows no advisory of {CANARY}, which has several: it cannot be believed"]
    for lock, audit in audits.items():
        assert audit is not None
        if audit.skipped:
            some = ", ".join(audit.skipped[:5])
            messages.append(
                f"{lock}: the service passed over {len(audit.skipped)} of {audit.packages} packages: {some}, …"
            )
    if messages:
        return UNKNOWN, messages
    return CLEAN, [
        f"{lock}: {audit.packages} packages, no advisory" for lock, audit in audits.items() if audit is not None
    ]


def bill_of_materials(root: Path, lock: str, folder: Path) -> Path:
    """Write the CycloneDX document of a lock: the same bytes for the same lock. Returns its path."""
    file = folder / f"{lock.removesuffix('.lock')}.cdx.json"
    words = ["--pyproject", str(root / "pyproject.toml"), "--output-format", "JSON", "--output-reproducible"]
    command = [str(_BIN / "cyclonedx-py"), "requirements", *words, "--output-file", str(file), str(root / lock)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return file


def audit(requirements: Path, *options: str) -> Audit | None:
    """The advisories of PyPI about pinned requirements; None if PyPI did not answer."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [
            "--disable-pip",
            *options,
            "--requirement",
            str(requirements),
            "--format",
            "json",
            "--output",
            str(report),
        ]
        command = [str(_BIN / "pip-audit"), *words, "--progress-spinner", "off", "--timeout", "15"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not report.exists():
            print(done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "no answer", file=sys.stderr)
            return None
        return Audit.of(json.loads(report.read_text()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the SBOMs, ask for advisories, and print the verdict; returns the exit code."""
    parser = argparse.ArgumentParser(prog="deploy/audit.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("--to", type=Path, default=Path("build/sbom"), help="folder for the SBOMs")
    folder: Path = parser.parse_args(arguments).to
    root = Path(__file__).parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    for lock in LOCKS:
        print(bill_of_materials(root, lock, folder))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(f"{CANARY}\n")
        file.flush()
        canary = audit(Path(file.name), "--no-deps")
    audits = {lock: None if canary is None else audit(root / lock, "--require-hashes") for lock in LOCKS}
    code, messages = judge(canary, audits)
    print(*messages, sep="\n", file=sys.stdout if code == CLEAN else sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
