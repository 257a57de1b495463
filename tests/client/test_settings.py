"""Which service a client finds, and that a token goes only where it belongs."""

import stat
from pathlib import Path

import pytest

from warpfold.client.errors import NotConfigured
from warpfold.client.settings import Surroundings, find_target, forget_login, keep_login


@pytest.fixture
def nowhere(tmp_path: Path) -> Surroundings:
    return Surroundings({}, tmp_path / "config" / "login.json", tmp_path)


def with_variables(where: Surroundings, **variables: str) -> Surroundings:
    return Surroundings(variables, where.config_file, where.folder)


def serve_in(where: Surroundings, url: str = "http://127.0.0.1:8080") -> None:
    folder = where.folder / ".warpfold"
    folder.mkdir()
    (folder / "url").write_text(f"{url}\n")
    (folder / "token").write_text("wf_served\n")


def test_what_is_said_comes_first(nowhere: Surroundings) -> None:
    serve_in(nowhere)
    keep_login(nowhere.config_file, "http://kept", "wf_kept")
    variables = with_variables(nowhere, WARPFOLD_URL="http://variable", WARPFOLD_TOKEN="wf_variable")
    assert find_target("http://said/", "wf_said", variables).url == "http://said"
    assert find_target(None, None, variables).token == "wf_variable"


def test_a_service_of_this_folder_is_found_then_the_latest_login(nowhere: Surroundings) -> None:
    keep_login(nowhere.config_file, "http://first", "wf_first")
    keep_login(nowhere.config_file, "http://second/", "wf_second")
    assert find_target(where=nowhere).url == "http://second"
    serve_in(nowhere)
    target = find_target(where=nowhere)
    assert (target.url, target.token) == ("http://127.0.0.1:8080", "wf_served")
    assert target.origin == str(nowhere.folder / ".warpfold")


def test_a_data_folder_elsewhere_is_looked_into(nowhere: Surroundings, tmp_path: Path) -> None:
    serve_in(nowhere)
    (tmp_path / ".warpfold").rename(tmp_path / "other")
    with pytest.raises(NotConfigured):
        find_target(where=nowhere)
    assert find_target(where=with_variables(nowhere, WARPFOLD_DATA_DIR="other")).token == "wf_served"


def test_a_kept_token_goes_only_to_its_own_address(nowhere: Surroundings) -> None:
    serve_in(nowhere)
    keep_login(nowhere.config_file, "http://kept", "wf_kept")
    assert find_target("http://kept", where=nowhere).token == "wf_kept"
    with pytest.raises(NotConfigured, match="no token for http://other"):
        find_target("http://other", where=nowhere)
    with pytest.raises(NotConfigured, match="no token for http://other"):
        find_target(where=with_variables(nowhere, WARPFOLD_URL="http://other"))


def test_nothing_known_says_what_to_do(nowhere: Surroundings) -> None:
    with pytest.raises(NotConfigured, match="warpfold login URL"):
        find_target(where=nowhere)


def test_a_mistyped_variable_is_named_where_nothing_was_found(nowhere: Surroundings) -> None:
    mistyped = with_variables(
        nowhere, WARPFOLD_TOKN="wf_1", WARPFOLD_URI="http://there", WARPFOLD_REDIS_URL="redis://x"
    )
    with pytest.raises(NotConfigured, match="WARPFOLD_TOKN means nothing: is WARPFOLD_TOKEN meant") as error:
        find_target(where=mistyped)
    assert "is WARPFOLD_URL meant" in str(error.value)
    assert "WARPFOLD_REDIS_URL means" not in str(error.value)


def test_logins_are_for_their_owner_alone(nowhere: Surroundings) -> None:
    path = nowhere.config_file
    keep_login(path, "http://one", "wf_1")
    path.chmod(0o644)
    keep_login(path, "http://two", "wf_2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert forget_login(path, "http://two")
    assert not forget_login(path, "http://two")
    assert find_target(where=nowhere).token == "wf_1"


def test_a_damaged_file_is_named(nowhere: Surroundings) -> None:
    nowhere.config_file.parent.mkdir()
    nowhere.config_file.write_text("{")
    with pytest.raises(NotConfigured, match=r"login\.json is damaged"):
        find_target(where=nowhere)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://there", "http://", "http://there:80x", "http://[::1"])
def test_what_is_no_address_is_said_at_once(nowhere: Surroundings, url: str) -> None:
    with pytest.raises(NotConfigured, match="is not an address"):
        find_target(url, "wf_x", nowhere)
    with pytest.raises(NotConfigured, match="is not an address"):
        find_target(where=with_variables(nowhere, WARPFOLD_URL=url))


def test_a_token_may_come_with_its_line_and_must_fit_into_a_header(nowhere: Surroundings) -> None:
    assert find_target("http://there", "wf_x\n", nowhere).token == "wf_x"
    for token in ("wf_ü", "wf_x\nwf_y"):
        with pytest.raises(NotConfigured, match="characters that are not allowed in a token"):
            find_target("http://there", token, nowhere)


def test_the_file_of_settings_comes_after_variables_and_before_notes(nowhere: Surroundings) -> None:
    serve_in(nowhere)
    path = nowhere.folder / "warpfold.toml"
    path.write_text('url = "http://filed/"\ntoken = "wf_filed"\nlease_s = 3')
    target = find_target(where=nowhere)
    assert (target.url, target.token, target.origin) == ("http://filed", "wf_filed", str(path))
    assert find_target(where=with_variables(nowhere, WARPFOLD_TOKEN="wf_1")).token == "wf_1"
    with pytest.raises(NotConfigured, match="no token for http://other"):
        find_target("http://other", where=nowhere)  # a token goes to the address beside it alone


def test_the_file_of_settings_may_name_the_address_or_the_data_folder_alone(nowhere: Surroundings) -> None:
    keep_login(nowhere.config_file, "http://kept", "wf_kept")
    keep_login(nowhere.config_file, "http://latest", "wf_latest")
    elsewhere = nowhere.config_file.parent / "warpfold.toml"
    elsewhere.write_text('url = "http://kept"')
    assert find_target(where=nowhere).token == "wf_kept"
    serve_in(nowhere)
    (nowhere.folder / ".warpfold").rename(nowhere.folder / "other")
    elsewhere.write_text('data_dir = "other"')
    assert find_target(where=nowhere).token == "wf_served"


def test_a_mistyped_key_of_the_file_is_named_where_nothing_was_found(nowhere: Surroundings) -> None:
    (nowhere.folder / "warpfold.toml").write_text('urll = "http://there"\ndataset_urls = ["http://a:1"]')
    with pytest.raises(NotConfigured, match=r"urll in .*warpfold\.toml means nothing: is url meant") as error:
        find_target(where=nowhere)
    assert "dataset_urls" not in str(error.value)


def test_a_file_of_settings_that_cannot_be_read_is_named(nowhere: Surroundings) -> None:
    path = nowhere.folder / "other.toml"
    named = with_variables(nowhere, WARPFOLD_CONFIG=str(path))
    for text in (None, "url = "):
        if text is not None:
            path.write_text(text)
        with pytest.raises(NotConfigured, match=r"other\.toml cannot be read"):
            find_target(where=named)
