import os
from pathlib import Path

import pytest

from tests.support import warm
from warpfold.app import logs
from warpfold.app.config import Settings
from warpfold.worker.embedded import EmbeddedRedis
from warpfold.worker.serve import command
from warpfold.worker.serve.command import default_slots, parse_slots
from warpfold.worker.stop import Stop


def test_slots_are_read_in_the_order_given() -> None:
    assert parse_slots("cuda:0, cpu") == ("cuda:0", "cpu")


@pytest.mark.parametrize("text", ["", " , ", "gpu", "cuda", "cuda:x", "cpu,cpu", "cuda:-1"])
def test_what_is_not_a_slot_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"slot|twice"):
        parse_slots(text)


def test_the_cpu_is_always_a_slot() -> None:
    assert default_slots()[-1] == "cpu"


@pytest.mark.parametrize(
    ("gpus", "slots"),
    [
        (0, ("cpu",)),
        (1, ("cuda:0", "cpu")),
        (2, ("cuda:0", "cuda:1", "gang", "cpu")),
    ],
)
def test_several_gpus_have_a_gang(monkeypatch: pytest.MonkeyPatch, gpus: int, slots: tuple[str, ...]) -> None:
    monkeypatch.setattr("warpfold.worker.serve.command.gpu_count", lambda: gpus)
    assert default_slots() == slots
    assert parse_slots(",".join(slots)) == slots


NOWHERE = "postgresql://127.0.0.1:9/none"


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        (("--host", "nowhere.invalid"), {}, "nowhere.invalid:18099 cannot be listened at ("),
        (("--data-dir", "file/below"), {}, "file/below cannot be made: Not a directory; choose another --data-dir"),
        ((), {"WARPFOLD_DATABASE_URL": NOWHERE}, "the database cannot be used: connection failed: "),
    ],
)
def test_what_is_in_the_way_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    variables: dict[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WARPFOLD")}
    words = ("warpfold.worker.serve", "--port", "18099", "--slots", "cpu", *options)
    code, printed = warm.run(words, {**ours, **variables}, tmp_path / "log", 120)
    assert code == 1
    *stages, last = printed.splitlines()
    assert all(line.startswith("warpfold serve: ") for line in (*stages, last))
    assert message in last


def test_servers_do_not_outlive_a_start_whose_imports_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("a file of the installation is missing")

    monkeypatch.setattr(command, "import_service", broken)
    monkeypatch.setattr(logs, "configure", lambda **fields: None)
    monkeypatch.setattr(Stop, "listen", lambda stop: None)  # the signals are those of the tests
    with pytest.raises(ImportError):
        command._run(Settings(database_url=NOWHERE), tmp_path, "127.0.0.1", 18099, ("cpu",))
    redis = EmbeddedRedis(tmp_path / "redis")
    assert redis.log.exists(), "it was started"
    assert not redis.is_running()
