"""Lines of the log: one JSON object each, whoever wrote them."""

import json
import subprocess
import sys
from typing import Any

PROGRAM = """
import logging, threading
import structlog
from warpfold.app import logs

logs.configure(role="test", slot="cpu")
log = structlog.get_logger()
with structlog.contextvars.bound_contextvars(request_id="r1"):
    log.info("ours", job="j1")
    logging.getLogger("some.library").warning("theirs %s", "too")
    logging.getLogger("some.library").info("not told")
    logging.getLogger("uvicorn.error").info("told")
thread = threading.Thread(target=log.info, args=("from a thread",))
thread.start()
thread.join()
try:
    1 / 0
except ZeroDivisionError:
    log.exception("with a traceback")
"""


def lines() -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_every_line_is_json_that_tells_the_process_and_the_request() -> None:
    found = lines()
    assert [one["event"] for one in found] == ["ours", "theirs too", "told", "from a thread", "with a traceback"]
    assert all((one["role"], one["slot"]) == ("test", "cpu") for one in found)
    assert [one.get("request_id") for one in found] == ["r1", "r1", "r1", None, None]
    assert list(found[0])[:4] == ["timestamp", "level", "role", "event"]
    assert (found[0]["job"], found[1]["logger"], found[1]["level"]) == ("j1", "some.library", "warning")
    assert "ZeroDivisionError: division by zero" in found[4]["exception"]
