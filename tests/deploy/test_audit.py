"""What the service is made of is written down, and an answer about its vulnerabilities is not believed too easily."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
OLD = {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.11"]}]}
GOOD = {"name": "numpy", "version": "2.4", "vulns": []}
UNKNOWN = {"name": "ours", "skip_reason": "not found"}


def script(name: str) -> ModuleType:
    """A script of deploy/, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "deploy" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__name__"] = name

    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return script("audit")


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    return script("licences")


def test_a_service_that_knows_an_old_advisory_and_none_of_ours_is_believed(audit: ModuleType) -> None:
    known, good = (audit.Audit.of({"dependencies": [row]}) for row in (OLD, GOOD))
    assert audit.judge(known, {"a.lock": good}) == (audit.CLEAN, ["a.lock: 1 packages, no advisory"])


def test_an_advisory_of_ours_is_named_with_what_mends_it(audit: ModuleType) -> None:
    known = audit.Audit.of({"dependencies": [OLD]})
    assert audit.judge(known, {"a.lock": known}) == (
        audit.VULNERABLE,
        ["a.lock: jinja2 2.10: PYSEC-1, fixed in 2.11"],
    )
    # Other dependencies are not known.
    assert audit.judge(None, {"a.lock": known, "b.lock": None})[0] == audit.VULNERABLE


def test_a_service_that_does_not_answer_or_knows_nothing_is_not_taken_for_good_news(audit: ModuleType) -> None:
    known, good, passed = (audit.Audit.of({"dependencies": [row]}) for row in (OLD, GOOD, UNKNOWN))
    for canary, of_lock in ((None, None), (known, None), (good, good), (passed, good), (known, passed)):
        code, lines = audit.judge(canary, {"a.lock": of_lock})
        assert code == audit.UNKNOWN
        assert len(lines) == 1
    assert len({audit.CLEAN, audit.VULNERABLE, audit.UNKNOWN}) == 3


def test_every_lock_is_audited(audit: ModuleType) -> None:
    locks = {path.name for path in ROOT.glob("requirements*.lock")} - {"requirements-audit.lock"}
    assert set(audit.LOCKS) == locks


def test_the_tools_of_the_audit_are_locked_apart_from_all_else() -> None:
    tools = {"pip-audit", "cyclonedx-bom"}
    for lock in ROOT.glob("requirements*.lock"):
        names = set(re.findall(r"^([a-z0-9._-]+)==", lock.read_text(), re.MULTILINE))
        assert names & tools == (tools if lock.name == "requirements-audit.lock" else set())


def test_every_package_of_the_locks_is_on_the_page_of_licences(licences: ModuleType) -> None:
    page = licences.PAGE.read_text()
    listed = dict(re.findall(r"^\| ([a-z0-9._-]+) \| (.+) \|$", page, re.MULTILINE))
    listed.pop("package", None)
    pinned = {name for lock in licences.LOCKS for name in licences.pinned(lock)}
    assert set(listed) == pinned, "run `make licences`"
    assert listed["psycopg"] == "LGPL-3.0-only"
    assert "GPL" not in " ".join(licence for name, licence in listed.items() if not name.startswith("psycopg"))


def test_the_page_says_what_the_installed_packages_say(licences: ModuleType) -> None:
    by_name = {
        licences.normal(distribution.metadata["Name"]): distribution
        for distribution in reversed([*licences.distributions()])
    }
    page = licences.PAGE.read_text()
    wrong = [
        f"{name}: {licences.licence_of(by_name[name].metadata)}"
        for name in licences.pinned("requirements.lock")
        if name in by_name
        and f"| {name} | {licences.licence_of(by_name[name].metadata).replace('|', '/')} |" not in page
    ]
    assert wrong == [], "run `make licences`"


def test_the_project_names_its_own_licence() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert 'license = "Apache-2.0"' in text
    assert 'license-files = ["LICENSE"]' in text
    assert "hatchling>=1.27" in text
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_locks_have_the_packages_of_all_formats_of_files() -> None:
    """Without them the tests of these formats would be skipped, and workers would refuse the files."""
    for lock in ROOT.glob("requirements*.lock"):
        names = set(re.findall(r"^([a-z0-9._-]+)==", lock.read_text(), re.MULTILINE))
        assert {"h5py", "pyarrow", "zarr"} <= names or lock.name == "requirements-audit.lock"
