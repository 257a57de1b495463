"""Functions that Numba compiles; their machine code is kept on disk for all processes of a machine.

Numba's own cache numbers the files of a function. Two processes that compile two signatures of it at the same time may
take the same number, and the index of the one then names the machine code of the other: a sum of int16 would be read as
one of int32. Here the name of a file is made of what the file holds, so that the worst that a race costs is that
something is compiled again.

Numba's own cache of a function notices a change in the function's file alone, while the machine code also holds the
compiled functions that it calls. Here a change in any file of its folder counts, so that compiled functions which call
each other stand in one folder, in as many files as read well. What functions of several folders call is in
`machine_code.py`, and a change there counts for all of them, as does one in a file whose constants they have.

The folder that NUMBA_CACHE_DIR names has a folder for each state of the sources, not for each place where they lie, so
that clones and versions with the same compiled functions share their machine code.
"""

import hashlib
import sys
from collections.abc import Callable, Set
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_name
from numba import extending
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.ccallback import CFunc
from numba.core.codegen import get_host_cpu_features
from numba.core.event import Event, Listener, register
from numba.core.sigutils import normalize_signature

from warpfold.kernels.machine.preparation import of_process

_KERNELS = Path(__file__).parents[1]
FOR_ALL = ("machine/machine_code.py", "exact/encoding.py", "exact/expansion.py")
"""Below `kernels/`: what compiled functions of several folders call, and the constants that they have of elsewhere."""


def jit(function: Callable[..., Any]) -> Any:
    """`function`, which is compiled at its first call with arguments of some types, or loaded where it was compiled
    before. The time of either is that of a preparation (`kernels.machine.preparation`).

    It releases the interpreter's lock, divides as IEEE 754 says, and never reorders or contracts operations on floats.
    """
    _count_preparing()
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(**options)(function)
    compiled._cache = _Cache(function)  # what `cache=True` does, with our files
    return compiled


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """`function` as a C function of Numba's `signature`, compiled now or loaded; its address is `.address`, for as long
    as the object lives. The functions of C that it calls must be known to the linker."""
    _count_preparing()
    compiled: Any = CFunc(function, normalize_signature(signature), {}, {"error_model": "numpy"})  # type: ignore[no-untyped-call]
    compiled._cache = _Cache(function)
    compiled.compile()
    return compiled


def intrinsic(function: Callable[..., Any]) -> Any:
    """What compiled functions call by the name of `function`, which says how it is compiled."""
    declared: Any = extending
    return declared.intrinsic(function)


def overload(function: Callable[..., Any]) -> Any:
    """Decorates what gives, for the types of the arguments, the function that compiled code calls for `function`."""
    declared: Any = extending
    return declared.overload(function)


class _Preparing(Listener):
    """Hears when a thread begins and ends to compile or load a function, or to wait for another one that does."""

    def __init__(self) -> None:
        self._preparation = of_process()

    def on_start(self, event: Event) -> None:
        self._preparation.__enter__()

    def on_end(self, event: Event) -> None:
        self._preparation.__exit__()


@cache
def _count_preparing() -> None:
    """Have Numba tell of all functions that this process compiles or loads from now on."""
    register("numba:compiler_lock", _Preparing())  # type: ignore[no-untyped-call]


class _Files(IndexDataCacheFile):
    """The index and the machine code of one function."""

    def save(self, key: Any, data: Any) -> None:
        """Keep `data` under `key`: the types of the arguments, the processor, and the function's bytecode."""
        stem = Path(self._index_name).stem
        name = f"{stem}.{hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()[:24]}.nbc"
        self._save_data(name, data)  # type: ignore[no-untyped-call]  # first: the index never names what is not there
        known = self._load_index()  # type: ignore[no-untyped-call]
        self._save_index({**known, key: name})  # type: ignore[no-untyped-call]


class _Place(UserProvidedCacheLocator):
    """The folder for the functions of a folder in its present state."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._cache_path = str(Path(numba.config.CACHE_DIR) / _name_of(Path(file).parent))  # type: ignore[attr-defined]


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 (as its base class has it)
        _Place if each is UserProvidedCacheLocator else each for each in CompileResultCacheImpl._locator_classes
    ]


class _Cache(FunctionCache):
    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        files = self._cache_file
        self._cache_file = _Files(  # type: ignore[no-untyped-call]
            files._cache_path, self._impl.filename_base, _stamp(Path(function.__code__.co_filename).parent)
        )


@cache
def _stamp(folder: Path) -> str:
    """What the sources in `folder` and the functions for all folders say, as a digest."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), *(_KERNELS / name for name in FOR_ALL)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def is_marked(what: str) -> bool:
    """Whether a process of this machine has called `mark_compiled` for the same, and nothing has changed since."""
    return _mark(what).exists()


def mark_compiled(what: str) -> None:
    """Note beside the machine code that all functions for `what` are compiled. A mark that cannot be made is left."""
    with suppress(OSError):
        _mark(what).touch()


def _mark(what: str) -> Path:
    """A file whose name says what was compiled, by which sources, and for which processor."""
    folder = Path(_Cache(_mark)._cache_path)
    return folder / f"compiled-{hashlib.sha256(repr((what, _compiler())).encode()).hexdigest()[:24]}.mark"


@cache
def _compiler() -> tuple[str, ...]:
    """What the sources of all compiled functions say, as a digest; who compiles them, and for which processor."""
    folders = sorted({path.parent for path in _KERNELS.rglob("*.py")})
    digest = hashlib.sha256("".join(map(_stamp, folders)).encode()).hexdigest()
    features: str = get_host_cpu_features()  # type: ignore[no-untyped-call]
    return digest, numba.__version__, get_host_cpu_name(), features, sys.version


def _name_of(folder: Path) -> str:
    return f"{folder.name}_{_stamp(folder)[:24]}"


def folders_in_use() -> Set[str]:
    """The names of the folders, below that of NUMBA_CACHE_DIR, for the present state of the sources."""
    return {_name_of(folder) for folder in {path.parent for path in _KERNELS.rglob("*.py")}}
