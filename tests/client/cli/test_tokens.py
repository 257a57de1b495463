import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.__main__ import main
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.db import BlockingDatabase


def test_tokens_are_made_listed_rotated_and_removed_from_afar(service: Service, shell: Shell) -> None:
    secret = shell.run("token", "create", "grace", "--label", "laptop", "--scope", "read", "--days", "3").out.strip()
    graces = Shell(shell.folder, {"WARPFOLD_URL": service.url, "WARPFOLD_TOKEN": secret})
    [own] = [json.loads(line) for line in graces.run("token", "list", "--json").out.splitlines()]
    assert (own["user"], own["label"], own["scopes"], own["made_by"]) == ("grace", "laptop", ["read"], "ada")
    assert f"{secret[:9]}…" in shell.run("token", "list").out
    refused = graces.run("token", "create")
    assert (refused.code, "all scopes of your role" in refused.err) == (4, True)
    new = shell.run("token", "rotate", str(own["id"]), "--both-hold", "1", "--json").out
    assert json.loads(new)["old_secret_until"] is not None
    assert graces.run("whoami").code == 0
    assert shell.run("token", "remove", str(own["id"])).err == f"token {own['id']} is removed\n"
    assert graces.run("whoami").code == 4


def test_the_audit_log_says_who_made_the_key(service: Service, shell: Shell) -> None:
    shell.run("token", "create", "noether", "--label", "seen")
    listed = shell.run("audit", "--action", "make_key", "--limit", "1").out
    assert all(word in listed for word in ("make_key", "ada", "127.0.0.1", "noether", "name seen"))
    entry = json.loads(shell.run("audit", "--actor", "ada", "--limit", "1", "--json").out)
    assert (entry["action"], entry["owner"], entry["details"]["name"]) == ("make_key", "noether", "seen")
    assert shell.run("audit", "--since", "2999-01-01").out.splitlines()[1:] == []


def test_a_user_manages_only_tokens_of_their_own(service: Service, shell: Shell) -> None:
    database = BlockingDatabase(service.settings.database_url, application="test")
    secret = database.run(create_token, "hopper")
    database.close()
    own = Shell(shell.folder, {"WARPFOLD_URL": service.url, "WARPFOLD_TOKEN": secret})
    more = json.loads(own.run("token", "create", "--scope", "submit", "--json").out)
    assert {json.loads(line)["user"] for line in own.run("token", "list", "--json").out.splitlines()} == {"hopper"}
    assert own.run("token", "create", "ada").code == 4
    for command in ("rotate", "remove"):
        gone = own.run("token", command, "1")
        assert (gone.code, "no token 1 of yours" in gone.err) == (4, True)
    assert own.run("token", "remove", str(more["id"])).code == 0


@pytest.mark.parametrize(
    ("variables", "words", "here"),
    [
        ({"WARPFOLD_DATABASE_URL": "postgresql://x"}, ["token", "list"], True),
        ({"WARPFOLD_DATABASE_URL_FILE": "secret"}, ["token", "list"], True),
        ({"WARPFOLD_DATABASE_URL": "postgresql://x"}, ["--url", "http://127.0.0.1:9", "token", "list"], False),
        ({}, ["token", "list"], False),
    ],
)
def test_where_the_database_is_the_command_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], words: list[str], here: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WARPFOLD_DATABASE_URL", "WARPFOLD_DATA_DIR", "WARPFOLD_URL", "WARPFOLD_TOKEN", "WARPFOLD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["warpfold", *words])
    became: list[Sequence[str]] = []

    def become(_: str, arguments: Sequence[str]) -> None:
        became.append(arguments[-2:])
        sys.exit(0)

    monkeypatch.setattr("os.execv", become)
    with pytest.raises(SystemExit):
        main()
    assert became == ([["warpfold.app.auth", "list"]] if here else [])
