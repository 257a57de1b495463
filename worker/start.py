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

NEEDLESS = ("pygments", "rich", "scipy")
"""Packages that libraries import where they can, for colours on a terminal and for linear algebra, of which the service
has neither: 25 MiB, and a sixth of the time of a start."""


@contextmanager
def imports(*, but_for: Sequence[str] = ()) -> Iterator[None]:
    """A block that imports modules: no garbage is collected meanwhile, and what the block made is never looked at. To
    the block, the packages `but_for` are not installed."""
    hidden = [name for name in but_for if name not in sys.modules]
    collects = gc.isenabled()
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collects:
            gc.enable()
        for name in hidden:
            del sys.modules[name]


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
    with imports(but_for=NEEDLESS):
        for name in ("warpfold.app.__main__", "warpfold.worker.dispatcher", "warpfold.worker.boot"):
            import_module(name)
        import_module("warpfold.worker.kinds").runs()
