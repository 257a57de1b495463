import re

import pytest
from typer.testing import CliRunner

from warpfold.app.auth.__main__ import cli


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", database_url)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


def test_a_token_is_created_listed_and_revoked(run: CliRunner) -> None:
    made = run.invoke(cli, ["create", "ann", "--role", "admin", "--label", "laptop"])
    assert made.exit_code == 0
    token = made.stdout.strip()
    assert re.fullmatch(r"wf_[A-Za-z0-9_-]{43}", token)
    listed = run.invoke(cli, ["list"]).stdout
    assert token not in listed
    assert all(text in listed for text in ("ann", "admin", "laptop", token[:9]))
    assert run.invoke(cli, ["remove", "1"]).exit_code == 0
    again = run.invoke(cli, ["revoke", "1"])  # as the command was called before
    assert again.exit_code == 1
    assert "no token 1 in force" in again.stderr


def test_a_viewer_is_made_as_such(run: CliRunner) -> None:
    assert run.invoke(cli, ["create", "vic", "--role", "viewer"]).exit_code == 0
    assert "viewer" in run.invoke(cli, ["list"]).stdout
    assert run.invoke(cli, ["create", "vic", "--role", "king"]).exit_code == 2


def test_another_role_is_refused_in_a_sentence(run: CliRunner) -> None:
    run.invoke(cli, ["create", "ann"])
    refused = run.invoke(cli, ["create", "ann", "--role", "admin"])
    assert refused.exit_code == 1
    assert "has the role user" in refused.stderr


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "a/b", " ann", "..", "a\u202eb"])
def test_a_name_that_cannot_be_kept_is_refused_in_a_sentence(run: CliRunner, name: str) -> None:
    refused = run.invoke(cli, ["create", name])
    assert refused.exit_code == 1
    assert "1 to 64" in refused.stderr


def test_a_database_that_is_not_there_is_told_in_a_sentence(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPFOLD_DATABASE_URL", "postgresql://postgres@/x?host=/nowhere")
    failed = run.invoke(cli, ["list"])
    assert failed.exit_code == 1
    assert "the database cannot be used" in failed.stderr
    monkeypatch.delenv("WARPFOLD_DATABASE_URL")
    assert "WARPFOLD_DATABASE_URL" in run.invoke(cli, ["list"]).stderr


def test_a_token_is_rotated_by_its_id_or_by_standard_input(run: CliRunner) -> None:
    first = run.invoke(cli, ["create", "ann", "--scope", "read", "--scope", "submit"]).stdout.strip()
    assert "read submit" in run.invoke(cli, ["list"]).stdout
    second = run.invoke(cli, ["rotate", "1", "--both-hold", "1"]).stdout.strip()
    third = run.invoke(cli, ["rotate"], input=f"{second}\n").stdout.strip()
    assert len({first, second, third}) == 3
    assert third[:9] in run.invoke(cli, ["list"]).stdout
    assert run.invoke(cli, ["rotate"], input=f"{second}\n").exit_code == 1
    assert run.invoke(cli, ["rotate", "2"]).exit_code == 1


def test_a_scope_beyond_the_role_is_refused_in_a_sentence(run: CliRunner) -> None:
    refused = run.invoke(cli, ["create", "vic", "--role", "viewer", "--scope", "submit"])
    assert refused.exit_code == 1
    assert "does not allow submit" in refused.stderr
