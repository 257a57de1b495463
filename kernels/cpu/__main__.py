"""`python -m warpfold.kernels.cpu` compiles all that a CPU slot can run into an empty cache, and lists each
function: how many types it has, the processor seconds that it took by itself, and the bytes of its machine code.
"""

import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
from numba.core.event import Event, Listener, register

from warpfold.kernels.cpu.ahead import compile_all
from warpfold.kernels.cpu.backend import CpuBackend


class _Compiled(Listener):
    """Hears of every function that is compiled, also within another one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.signatures: Counter[tuple[str, str]] = Counter()
        self._began: list[float] = []

    def on_start(self, event: Event) -> None:
        self._began.append(time.process_time())

    def on_end(self, event: Event) -> None:
        function = event.data["dispatcher"].py_func
        name = function.__module__.removeprefix("warpfold.kernels."), function.__qualname__
        took = time.process_time() - self._began.pop()
        self.seconds[name] += took
        self.signatures[name] += 1
        # What holds this function counts its own time alone.
        self._began[:] = [began + took for began in self._began]


@contextmanager
def _empty_cache() -> Iterator[Path]:
    """A folder in which Numba keeps what is compiled meanwhile."""
    config: Any = numba.config
    before = config.CACHE_DIR
    with TemporaryDirectory() as folder:
        config.CACHE_DIR = folder
        try:
            yield Path(folder)
        finally:
            config.CACHE_DIR = before


def listed(compile_some: Callable[[], object]) -> Iterator[str]:
    """Rows for the functions that are compiled meanwhile, those that took longest first, and one for all of them. Their
    modules are imported meanwhile, too."""
    heard, code = _Compiled(), Counter[str]()
    register("numba:compile", heard)  # type: ignore[no-untyped-call]
    began = time.process_time()
    with _empty_cache() as folder:
        compile_some()
        for path in folder.rglob("*.nbc"):
            code[path.name.partition("-")[0]] += path.stat().st_size
    all_s = time.process_time() - began
    yield f"{'function':70} {'types':>5} {'seconds':>8} {'bytes':>10}"
    for (module, function), seconds in sorted(heard.seconds.items(), key=lambda each: -each[1]):
        nbytes = code[f"{module.rpartition('.')[2]}.{function}"]
        yield f"{module + '.' + function:70} {heard.signatures[module, function]:5} {seconds:8.2f} {nbytes:10,}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    functions = f"{heard.signatures.total()} functions in {sum(heard.seconds.values()):.1f} s of {all_s:.1f} s"
    yield f"{functions}: {code.total():,} bytes, at most {peak:.0f} MiB of memory"


def main() -> int:
    for row in listed(lambda: compile_all(CpuBackend())):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
