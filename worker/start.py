"""Starts the processes of the service.

Imports make hundreds of thousands of objects that stay. The collector of garbage looks at them again and again while
they come, which takes a sixth of a process's start, and looks at them once more in each full collection afterwards.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec


@contextmanager
def imports() -> Iterator[None]:
    """A block that imports modules: no garbage is collected meanwhile, and what the block made is never looked at."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def run(arguments: Sequence[str]) -> object:
    """Do what `python -m` does with these arguments: run the function `main` of a module, or of `__main__` in a
    package."""
    name = arguments[0]
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name += ".__main__"
    sys.argv = list(arguments)
    with imports():
        module = import_module(name)
    return module.main()


def import_service() -> None:
    """Import what the api, the dispatcher and the workers need, and what all slots need."""
    for name in ("warpfold.app.__main__", "warpfold.worker.dispatcher", "warpfold.worker.boot"):
        import_module(name)
    import_module("warpfold.worker.kinds").runs()
