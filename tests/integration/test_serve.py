"""`warpfold serve` as a user runs it: a process of its own, embedded servers, HTTP."""

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support import processes
from tests.support.servers import folder
from tests.support.waiting import until
from warpfold.client.api import Client
from warpfold.client.demo.service import READY

SUM = {"kind": "reduce", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}}


@dataclass
class Serve:
    process: "subprocess.Popen[str]"
    url: str
    data_dir: Path

    def client(self) -> Client:
        return Client(self.url, (self.data_dir / "token").read_text().strip())

    def named(self, *words: str) -> list[psutil.Process]:
        """Descendants whose command line holds all `words` in sequence."""
        left = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.Error:
                continue
            if any(tuple(line[at : at + len(words)]) == words for at in range(len(line))):
                left.append(process)
        return left

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it in an orderly way; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "warpfold", "serve", *options]


@contextmanager
def serving(data_dir: Path) -> Iterator[Serve]:
    port = _free_port()
    log = (data_dir.parent / "serve.log").open("a")
    process = subprocess.Popen(
        _command("--port", str(port), "--data-dir", str(data_dir), "--slots", "cpu"),
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"{READY}http://127.0.0.1:{port}\n", (data_dir.parent / "serve.log").read_text()
        yield Serve(process, f"http://127.0.0.1:{port}", data_dir)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
        log.close()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with folder() as root:
        yield root / "warpfold"


def _sum(serve: Serve) -> object:
    with serve.client() as client:
        return client.reduction(client.submit(SUM)).value


def test_after_a_stop_and_a_start_jobs_are_found_again_and_what_ran_runs_again(data_dir: Path) -> None:
    source = {"type": "generate", "distribution": "normal", "n": 1 << 40, "dtype": "float32"}
    with serving(data_dir) as serve, serve.client() as client:
        assert stat.S_IMODE((data_dir / "token").stat().st_mode) == 0o600
        ended = client.wait(client.submit(SUM))
        assert client.reduction(ended).value == 1.0
        endless = client.submit({"kind": "reduce", "source": source})
        until(lambda: client.job(endless.id).status == "running")
        descendants = psutil.Process(serve.process.pid).children(recursive=True)
        assert serve.stop(signal.SIGINT) == 0
        processes.wait_for_ends(descendants)
    token = (data_dir / "token").read_text()
    with serving(data_dir) as serve, serve.client() as client:
        assert (data_dir / "token").read_text() == token
        assert client.job(ended.id) == ended
        until(lambda: client.job(endless.id).status == "running")
        assert client.job(endless.id).attempt == 2
        client.cancel(endless.id)
        assert client.wait(client.job(endless.id)).status == "cancelled"
        assert _sum(serve) == 1.0


@pytest.fixture(scope="module")
def shared() -> Iterator[Serve]:
    """A service for tests that leave a whole one behind."""
    with folder() as root, serving(root / "warpfold") as serve:
        yield serve
        assert serve.stop() == 0


@pytest.mark.parametrize("module", [("warpfold.app",), ("warpfold.worker.dispatcher",), ("warpfold.worker", "--slot")])
def test_a_killed_process_is_restarted_and_the_log_says_so(shared: Serve, module: tuple[str, ...]) -> None:
    (victim,) = shared.named(*module)
    os.kill(victim.pid, signal.SIGKILL)

    def following() -> int | None:
        pids = [process.pid for process in shared.named(*module) if process.pid != victim.pid]
        return pids[0] if len(pids) == 1 else None  # a fork has the name of its parent for a moment

    pid = until(following, describe=lambda: "not restarted")
    assert _sum(shared) == 1.0
    lines = (shared.data_dir.parent / "serve.log").read_text().splitlines()
    restarted = next(index for index, line in enumerate(lines) if "restarted" in line and str(pid) in line)
    assert any("died" in line for line in lines[:restarted])


def test_a_token_is_made_beside_a_running_service(shared: Serve) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "warpfold.client", "token", "create", "ada"],
        env={**os.environ, "WARPFOLD_DATA_DIR": str(shared.data_dir)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert stat.S_IMODE((shared.data_dir / "database_url").stat().st_mode) == 0o600
    with Client(shared.url, done.stdout.strip()) as ada:
        assert ada.wait(ada.submit(SUM)).owner == "ada"


def test_a_backup_comes_back_into_another_folder(shared: Serve, tmp_path: Path) -> None:
    with shared.client() as client:
        ended = client.wait(client.submit(SUM))
        dataset = client.upload(np.array([1e16, 1.0, -1e16]))
    saving = [sys.executable, "-m", "warpfold", "backup", str(tmp_path), "--data-dir", str(shared.data_dir)]
    made = subprocess.run(saving, check=True, capture_output=True, text=True).stdout
    (saved,) = tmp_path.iterdir()
    assert f"`warpfold restore {saved}` brings them back" in made
    with folder() as root:
        other = root / "warpfold"
        (other / "postgres").mkdir(parents=True)
        (other / "token").write_text("wf_of_another_service")
        words = ("restore", str(saved), "--data-dir", str(other), "--replace")
        done = subprocess.run([sys.executable, "-m", "warpfold", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "the database of before is in" in done.stdout
        with serving(other) as serve, serve.client() as client:
            assert client.job(ended.id) == ended
            again = client.submit({"kind": "reduce", "source": {"type": "dataset", "id": dataset.id}})
            assert client.reduction(again).value == 1.0


def test_a_port_in_use_is_named(data_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            _command("--port", str(port), "--data-dir", str(data_dir)), capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is in use" in done.stderr


def test_a_second_serve_on_the_same_folder_is_refused(shared: Serve) -> None:
    done = subprocess.run(
        _command("--port", str(_free_port()), "--data-dir", str(shared.data_dir)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "another `warpfold serve` uses" in done.stderr


def test_a_slot_that_is_none_is_refused(data_dir: Path) -> None:
    done = subprocess.run(_command("--slots", "gpu"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'gpu' is not a slot" in done.stderr
