"""Compiles CUDA C++ to machine code: workers use one function for that and, without a GPU, so do the checks.

A `Unit` is a source file and the kernels wanted from it, named as C++ expressions ("two_pass<Sum<float>>"); NVRTC
instantiates the templates and reports the symbol of each. Machine code is kept in a folder under a key made of
everything that decides it: the text of the source and of every header that it includes, the kernels, the options, the
architecture and NVRTC's version. Our headers include none of the toolkit's, so NVRTC alone is needed.
`docs/decisions/0016-a-cache-of-our-own-for-cubins.md` says why cuda.core's cache does not serve.

`python -m warpfold.kernels.cuda` compiles the whole matrix and prints what each kernel needs
(`make compile-cuda`).
"""

import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from warpfold.kernels.errors import KernelError, Unavailable
from warpfold.kernels.machine.extras import install

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""The architectures that every source is compiled for in the checks: Turing to Blackwell."""

INCLUDE = Path(__file__).parent / "include"

# IEEE arithmetic as written: no contraction into FMA (a source asks for one by __fma_rn), no flushing of subnormals,
# correctly rounded division and square root. The -v of ptxas only reports.
_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "std": "c++17",
        "fma": False,
        "ftz": False,
        "prec_div": True,
        "prec_sqrt": True,
        "use_fast_math": False,
        "device_int128": True,
        "lineinfo": True,
        "ptxas_options": ("-v",),
    }
)


_CACHES_SINCE = (12, 9)
"""NVRTC from 12.9 on keeps what it compiled where a driver is installed (NVRTC documentation, "Caching"). Its own cache
returns code without the report of ptxas, so it stays off."""


_IMPORTING = Lock()
"""cuda.core names its parts while it is imported: a second thread that imports it meanwhile would not find them."""


class CompileError(KernelError):
    """NVRTC refused a source; the message holds its log."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A source file and the kernels wanted from it, as C++ name expressions."""

    source: Path
    kernels: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.source.name


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes of a multiprocessor, as ptxas reports it.

    Registers are counted a thread. Static shared memory is in bytes a block, stack and spills in bytes a thread.
    """

    kernel: str
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True, slots=True)
class Binary:
    """Machine code for one architecture. `symbols` maps each kernel of the unit to its name in `path`, a cubin."""

    path: Path
    arch: str
    symbols: Mapping[str, str]
    resources: tuple[Resources, ...]
    cached: bool


def default_cache() -> Path:
    """The folder of machine code, unless the caller names another."""
    return Path.home() / ".cache" / "warpfold" / "cubin"


def arch_of(compute_capability: str) -> str:
    """The architecture of a chip of compute capability "9.0": "sm_90"."""
    return "sm_" + compute_capability.replace(".", "")


def nvrtc_version() -> str:
    """The version of the NVRTC library in use, "13.4". Raises Unavailable if it cannot be loaded."""
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise Unavailable(f"CUDA sources cannot be compiled: {error}; {install('cuda13', 'cuda12')}") from error
    if int(status) != 0:
        raise Unavailable(f"NVRTC does not answer: {status!s}")
    return f"{major}.{minor}"


def compile_unit(unit: Unit, arch: str, cache: Path | None = None) -> Binary:
    """Machine code of `unit` for `arch` ("sm_90"), from the folder `cache` where it holds that, else compiled into it.

    Needs neither a GPU nor its driver. Several processes may share the folder. Raises CompileError with NVRTC's log,
    and Unavailable if NVRTC or cuda.core is not installed or does not know the architecture.
    """
    folder = default_cache() if cache is None else cache
    stem = f"{unit.source.stem}-{arch}-{_key(unit, arch, nvrtc_version())}"
    cubin, record = folder / f"{stem}.cubin", folder / f"{stem}.json"
    if cubin.exists() and record.exists():
        return _read_record(cubin, record, arch)
    code, symbols, log = _run_nvrtc(unit, arch)
    resources = parse_resources(log, symbols)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"symbols": symbols, "resources": [asdict(row) for row in resources]}, indent=1)
    _write(record, text.encode())  # the record comes first, so that a cubin never lacks it
    _write(cubin, code)
    return Binary(cubin, arch, symbols, resources, cached=False)


def _read_record(cubin: Path, record: Path, arch: str) -> Binary:
    stored = json.loads(record.read_text())
    resources = tuple(Resources(**row) for row in stored["resources"])
    return Binary(cubin, arch, stored["symbols"], resources, cached=True)


def _write(path: Path, content: bytes) -> None:
    """All of `content` or nothing appears at `path`, whoever else writes it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _run_nvrtc(unit: Unit, arch: str) -> tuple[bytes, dict[str, str], str]:
    """The cubin, the symbol of each kernel, and the log."""
    with _IMPORTING:
        from cuda.core import Program, ProgramOptions

    log = io.StringIO()
    anew = {"no_cache": True} if _version_of(nvrtc_version()) >= _CACHES_SINCE else {}
    options = ProgramOptions(
        name=unit.name, arch=arch, include_path=[str(INCLUDE), str(unit.source.parent)], **_OPTIONS, **anew
    )
    try:
        code = Program(unit.source.read_text(), "c++", options).compile(
            "cubin", name_expressions=unit.kernels, logs=log
        )
    except Exception as error:  # cuda.core raises its own NVRTCError, which it does not export
        if "invalid value for --gpu-architecture" in f"{error}{log.getvalue()}":
            raise Unavailable(f"NVRTC {nvrtc_version()} does not know the architecture {arch}") from error
        raise CompileError(f"{unit.name} does not compile for {arch}: {error}\n{log.getvalue()}".strip()) from error
    symbols = {name: _text(symbol) for name, symbol in code.symbol_mapping.items()}
    return bytes(code.code), symbols, log.getvalue()


def _version_of(dotted: str) -> tuple[int, ...]:
    return tuple(map(int, dotted.split(".")))


def _text(symbol: "bytes | str") -> str:
    return symbol.decode() if isinstance(symbol, bytes) else symbol


_INCLUDES = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def _key(unit: Unit, arch: str, nvrtc: str) -> str:
    digest = hashlib.sha256()
    for part in (arch, nvrtc, repr(sorted(_OPTIONS.items())), *sorted(unit.kernels)):
        digest.update(part.encode() + b"\0")
    for path in sources_of(unit.source):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def sources_of(source: Path) -> tuple[Path, ...]:
    """`source` and every header that it includes, directly or not, each once."""
    sources: dict[Path, None] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in sources:
            continue
        sources[path] = None
        for name in _INCLUDES.findall(path.read_text()):
            candidates = (path.parent / name, INCLUDE / name)
            waiting += [header for header in candidates if header.exists()][:1]  # the compiler reports a missing one
    return tuple(sources)


_ENTRY = re.compile(r"Compiling entry function '(\S+)' for")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(log: str, symbols: Mapping[str, str]) -> tuple[Resources, ...]:
    """What ptxas says in `log` about each kernel of `symbols`, in their order. Raises CompileError if it misses one."""
    sections = _ENTRY.split(log)
    reports = dict(zip(sections[1::2], sections[2::2], strict=True))
    rows = []
    for kernel, symbol in symbols.items():
        section = reports.get(symbol, "")
        stack, registers, shared = _STACK.search(section), _REGISTERS.search(section), _SHARED.search(section)
        if stack is None or registers is None:
            raise CompileError(f"ptxas reported nothing about {kernel} ({symbol}):\n{log}")
        frame, stores, loads = (int(group) for group in stack.groups())
        static = 0 if shared is None else int(shared[1])
        rows.append(Resources(kernel, int(registers[1]), static, frame, stores, loads))
    return tuple(rows)
