"""One process of the tests compiles a function of Numba, and the others load it.

A clean clone has no machine code yet, and all processes begin with tests that call the same functions. If each process
compiled them for itself, that would take a minute of computing.
"""

from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from tests.support.turns import turn


def compile_by_turns(folder: Path) -> None:
    """From now on no two processes compile the same function at the same time, of this process, its forks, and all
    others that name the same folder."""
    folder.mkdir(parents=True, exist_ok=True)
    at_once: Any = Dispatcher.compile
    compiling: set[str] = set()

    def in_turn(self: Any, signature: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        with global_compiler_lock:  # first: two threads of a process must not wait for each other
            if name in compiling:  # the function calls itself
                return at_once(self, signature)
            with turn(folder / name):
                compiling.add(name)
                try:
                    return at_once(self, signature)
                finally:
                    compiling.discard(name)

    Dispatcher.compile = in_turn  # type: ignore[method-assign, assignment]
