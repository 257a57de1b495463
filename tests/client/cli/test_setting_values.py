import json
from pathlib import Path

from tests.support.shell import Shell


def test_settings_are_those_of_the_client_and_of_the_server_with_their_origins(shell: Shell, tmp_path: Path) -> None:
    named = tmp_path / "mine.toml"
    named.write_text("max_values = 7")
    shell.environment["WARPFOLD_LEASE_S"] = "9"
    done = shell.run("--config", str(named), "settings", "--json")
    assert done.code == 0, done
    lines = {line["setting"]: line for line in map(json.loads, done.out.splitlines())}
    assert lines["url"]["origin"] == "the command or the environment"
    assert lines["token"]["value"] == "***"
    assert (lines["max_values"]["value"], lines["max_values"]["origin"]) == (7, str(named))
    assert lines["lease_s"]["origin"] == "WARPFOLD_LEASE_S"


def test_a_wrong_setting_ends_the_command(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "warpfold.toml").write_text("max_valus = 7")
    done = shell.run("settings")
    assert done.code == 2
    assert "warpfold.toml: max_valus is no setting; is max_values meant?" in done.err
