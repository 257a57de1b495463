"""What crashes leave behind: names without letters in Redis, servers without their `serve`, files that came in."""

from pathlib import Path

import pytest
from redis import Redis

from tests.support.api import served
from tests.support.figures import Figures
from tests.support.gated_service import N, gated_service
from tests.support.ledger import Ledger
from tests.support.servers import folder
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.worker.boot import describe
from warpfold.worker.queue import rq_id
from warpfold.worker.serve.bootstrap import start_servers


def test_a_job_whose_message_redis_lost_is_sent_again_while_its_slot_is_busy(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures
) -> None:
    """Redis kept the name in the queue and lost the letter."""
    queue = f"rq:queue:{describe('cpu').id}"
    with gated_service(settings, log) as (_, gates), Redis.from_url(settings.redis_url) as redis:
        running, waiting = gates.submit(ledger, N), gates.submit(ledger, N)
        ledger.until(running, "status", "running")
        letter = f"rq:job:{rq_id(waiting, 1)}"
        until(lambda: bool(redis.exists(letter)))
        redis.delete(letter)
        with figures.timed("letter lost, its name kept: until it is sent again"):
            until(lambda: bool(redis.exists(letter)))
        assert redis.lrange(queue, 0, -1) == [rq_id(waiting, 1).encode()]
        gates.open(N)
        ledger.wait([running, waiting], 120)
        assert [ledger.job(job_id).attempt for job_id in (running, waiting)] == [1, 1]
        until(lambda: redis.llen(queue) == redis.llen(f"{queue}:intermediate") == 0)


def test_servers_that_a_killed_serve_left_running_are_adopted_and_the_log_says_so(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with folder() as root:
        settings = Settings(database_url="", redis_url="", data_dir=root)
        killed = start_servers(settings, root)
        assert "adopted" not in "".join(capfd.readouterr())
        following = start_servers(settings, root)
        try:
            printed = "".join(capfd.readouterr())
            for name, before, after in (
                ("postgres", killed.postgres, following.postgres),
                ("redis", killed.redis, following.redis),
            ):
                assert before is not None
                assert after is not None
                assert before.pid == after.pid
                assert any(
                    "adopted" in line and name in line and str(after.pid) in line for line in printed.splitlines()
                )
        finally:
            following.stop()
        for left in (killed.postgres, killed.redis):
            assert left is not None
            assert not left.is_running()


def test_what_a_killed_api_was_taking_in_is_gone_once_the_next_one_runs(settings: Settings) -> None:
    incoming = settings.datasets_dir() / "incoming"
    incoming.mkdir(parents=True)
    (incoming / "tmp-half").write_bytes(b"ha")  # no process holds it
    with served(settings):
        assert list(incoming.iterdir()) == []
