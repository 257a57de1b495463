"""Starts a process of the service: `python -m warpfold.worker.start MODULE …` does what `python -m MODULE …` does.

Imports make hundreds of thousands of objects that stay. The collector of garbage looks at them again and again while
they come, which takes a sixth of a process's start, and looks at them once more in each full collection afterwards.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn


@contextmanager
def imports() -> Iterator[None]:
    """A block that imports modules: no garbage is collected meanwhile, and what the block made is never looked at."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def main() -> NoReturn:
    """Run the function `main` of the module that the first argument names, or of `__main__` in a package."""
    del sys.argv[0]
    name = sys.argv[0]
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name += ".__main__"
    with imports():
        module = import_module(name)
    sys.exit(module.main())


if __name__ == "__main__":
    main()
