"""The drill of several machines: `python -m benchmarks.hosts`.

Starts the service on four machines, which are network namespaces of this one, with 20 ms of latency each way and 1 % of
all packets lost, strikes ten blows while 500 jobs are submitted, and checks every job. Needs root and /dev/net/tun.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, report
from benchmarks.hosts import calls
from benchmarks.hosts.blows import BLOWS, Blow
from benchmarks.hosts.drill import Drill
from benchmarks.hosts.stage import stage

_WITHIN_S = 20.0
_DATASETS = 6


def main() -> int:
    """Run the drill and print its figures; 0 if all are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500, help="how many jobs are submitted (%(default)s)")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="of every packet (%(default)s)")
    parser.add_argument("--loss", type=float, default=0.01, help="the share of packets that is lost (%(default)s)")
    parser.add_argument("--keep", type=Path, help="an empty folder for the logs, which stay there")
    parser.add_argument("--out", type=Path, help="write the figures with their provenance as JSON")
    names = [blow.__name__ for blow in BLOWS]
    parser.add_argument("blows", nargs="*", metavar="BLOW", help=f"{', '.join(names)}; by default all")
    options = parser.parse_args()
    if (why := calls.why_not()) is not None:
        print(f"The drill cannot run here: {why}.", file=sys.stderr)
        return 2
    chosen = [blow for blow in BLOWS if blow.__name__ in (options.blows or names)]
    with tempfile.TemporaryDirectory(prefix="warpfold-hosts-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        figures = _drill(folder, chosen, options.jobs, options.delay_ms / 1000, options.loss)
    return report("Several machines", figures, options.out)


def _drill(folder: Path, chosen: Sequence[Blow], jobs: int, delay_s: float, loss: float) -> list[Figure]:
    figures = []
    with stage(folder.resolve()) as on, calls.inside_network(on.user.pid):
        drill = Drill(on)
        try:
            for machine in on.workers:
                drill.until_ready(machine)
            drill.upload(_DATASETS)
            on.lab.shape(delay_s, loss)
            began = time.monotonic()
            for number, blow in enumerate(chosen):
                share = (jobs - len(drill.expected)) // (len(chosen) - number) if number else jobs // len(chosen)
                line = blow(drill, max(0, share - 3))
                print(f"{time.monotonic() - began:6.1f} s  {blow.__doc__}: {line}", flush=True)
                figures.append(Figure(str(blow.__doc__), line or "done", "", True))
            if (rest := jobs - len(drill.expected)) > 0:
                drill.submit(rest)
            drill.settle()
            seconds = time.monotonic() - began
            carried, lost = on.lab.packets()
        finally:
            drill.close()
    slowest = max(drill.elsewhere_s, default=0.0)
    total = len(drill.expected)
    return [
        *figures,
        Figure("jobs, all ended once with the right value", f"{total} in {seconds:.0f} s", f"{jobs}", total >= jobs),
        Figure("submissions that were sent again", str(drill.resubmitted), "", True),
        Figure("packets carried, and lost", f"{carried:,} and {lost:,}", "", True),
        Figure(
            "jobs of a lost machine ran elsewhere within", f"{slowest:.1f} s", f"{_WITHIN_S:g} s", slowest <= _WITHIN_S
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
