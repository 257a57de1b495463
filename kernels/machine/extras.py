"""How to install the packages that a part of Warpfold needs. Warpfold is in no package index, and anybody could take
its name there, so extras are installed from a clone."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from warpfold.kernels.errors import OutOfMemory, Unavailable, lacks_memory


def install(*extras: str) -> str:
    """What to type for one of the `extras` of pyproject.toml: "`pip install '.[server]'` in a clone of Warpfold"."""
    return " or ".join(f"`pip install '.[{extra}]'`" for extra in extras) + " in a clone of Warpfold"


def installed(name: str) -> bool:
    """Whether the package can be imported; it is not imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


def required(module: str, extra: str) -> Any:
    """The module, imported. Raises Unavailable, naming the extra that brings its package, where it is not there, and
    OutOfMemory where its libraries do not fit in memory."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and (error.name or package).partition(".")[0] == package:
            raise Unavailable(
                f"{package} is not installed on the machine that ran this; {install(extra)} brings it"
            ) from None
        if lacks_memory(error):
            raise OutOfMemory(f"{package} cannot be imported for lack of memory: {error}") from None
        raise Unavailable(f"{package} cannot be imported on the machine that ran this: {error}") from None


@contextmanager
def bringing(*extras: str, besides: str = "") -> Iterator[None]:
    """Imports of packages that each of the `extras` brings, `besides` one of an index that no extra brings. Where one
    is not there, the error says what to type."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "warpfold"):
            raise
        how = f"`pip install {package}`" if package == besides else install(*extras)
        why = f"{package} is not installed: {how} brings it"
        raise ModuleNotFoundError(why, name=error.name) from None
