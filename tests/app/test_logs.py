"""Lines of the log are one JSON object each, from every library."""

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
    logged = lines()
    assert [line["event"] for line in logged] == ["ours", "theirs too", "told", "from a thread", "with a traceback"]
    assert all((line["role"], line["slot"]) == ("test", "cpu") for line in logged)
    assert [line.get("request_id") for line in logged] == ["r1", "r1", "r1", None, None]
    assert list(logged[0])[:4] == ["timestamp", "level", "role", "event"]
    assert (logged[0]["job"], logged[1]["logger"], logged[1]["level"]) == ("j1", "some.library", "warning")
    assert "ZeroDivisionError: division by zero" in logged[4]["exception"]
