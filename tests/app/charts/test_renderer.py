"""The process that draws."""

import subprocess
import sys

import psutil

from tests.support import processes

DRAWS = """
import asyncio, sys, time
from warpfold.app.charts.chart import Chart
from warpfold.app.charts.renderer import Press

SPEC = '{"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a", "type": "quantitative"}}}'

async def main():
    (drawn,) = await Press().svg([Chart("one", "One", "one point", SPEC)])
    print(drawn[:4], flush=True)
    time.sleep(60)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_nothing_is_left_of_a_server_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", DRAWS], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "<svg\n"
        left = psutil.Process(server.pid).children(recursive=True)
        server.kill()
    assert left
    processes.wait_for_ends(left)
