"""The device code of one thread or one warp, built by the host's C++ compiler: its arithmetic tested without a GPU."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.turns import turn
from warpfold.kernels.cuda.compile import INCLUDE
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.strategies.partial_results import WORDS, PartialResult
from warpfold.kernels.generate import Plan

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")

_CARRYING = {
    count: f'"add.cc.u32 %0, %0, %{count + 1}; '
    + "".join(f"addc.cc.u32 %{k}, %{k}, %{count + 1 + k}; " for k in range(1, count))
    + f'addc.u32 %{count}, %{count}, %{count};"'
    + " : "
    + ", ".join(f'"+r"(w[{k}])' for k in range(count))
    + ', "+r"(carries) : '
    + ", ".join(f'"r"(a[{k}])' for k in range(count))
    for count in (3, 4, 5)
}
_JOINING = (
    '"add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %5, %6; addc.u32 %2, %7, 0;" : "=&r"(w[1]), "=&r"(w[2]), "=r"(w[3])'
    ' : "r"(a1), "r"(b0), "r"(b1), "r"(c0), "r"(c1)'
)
# PTX has no meaning to a host compiler: (what the header says, what stands for it here).
_PTX = (
    ('asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits))', "wide = float_of_float16(x.bits)"),
    ('asm("cvt.rn.f16.f64 %0, %1;" : "=h"(out.bits) : "d"(x))', "out.bits = float16_of_double(x)"),
    (f"asm({_CARRYING[3]})", "add_words(w, a, carries)"),
    (f"asm({_CARRYING[4]})", "add_words(w, a, carries)"),
    (f"asm({_CARRYING[5]})", "add_words(w, a, carries)"),
    ('asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "r"(y))', "product = uint64(x) * y"),
    (f"asm({_JOINING})", "join_words(w, a, b, c)"),
)
# No contraction, as on the device; fma where it is asked for. This much optimization costs the compiler a quarter more
# time, and saves the tests twice as much.
_OPTIONS = ("-std=c++20", "-Og", "-ffp-contract=off", "-w", "-shared", "-fPIC")

# Of a source the code before its first kernel, or the first line that needs other threads.
_CUT = {
    "sources/generate.cu": "template <class T, int METHOD>\n__global__",
    "sources/exact.cu": "template <class T, int TERMS, int THREADS, int BLOCKS",
    "strategies/compensated.cu": "template <class R, class C",
}


def build() -> ctypes.CDLL:
    """Reductions and generators."""
    library = _compiled("arithmetic")
    library.reduce_by_name.restype = ctypes.c_bool
    library.generate_by_name.restype = ctypes.c_bool
    return library


def build_exact() -> ctypes.CDLL:
    """The exact accumulator."""
    library = _compiled("exact")
    library.exact_by_name.restype = ctypes.c_bool
    return library


def build_grouped() -> ctypes.CDLL:
    """Exact reductions of many values that add up."""
    library = _compiled("grouped")
    library.grouped_by_name.restype = ctypes.c_bool
    return library


def build_finish() -> ctypes.CDLL:
    """Values of totals."""
    library = _compiled("finish")
    library.finish_by_name.restype = ctypes.c_bool
    return library


def build_folds() -> ctypes.CDLL:
    """Reductions of many values that leave words."""
    library = _compiled("grouped_folds")
    library.fold_by_name.restype = ctypes.c_bool
    return library


def build_picks() -> ctypes.CDLL:
    """Elements that are picked, and counts of bins."""
    library = _compiled("picks")
    library.pick_by_name.restype = ctypes.c_bool
    return library


def build_windows() -> ctypes.CDLL:
    """Values of windows."""
    library = _compiled("windows")
    library.window_by_name.restype = ctypes.c_bool
    return library


def build_keyed() -> ctypes.CDLL:
    """Exact sums by key."""
    library = _compiled("keyed")
    library.keyed_by_name.restype = ctypes.c_bool
    return library


@functools.cache
def _compiled(name: str) -> ctypes.CDLL:
    """The library of `name`.cpp. It is compiled once for all tests that find the same sources and the same compiler."""
    with tempfile.TemporaryDirectory(prefix="warpfold-tests-") as made:
        folder = Path(made)
        _translate(folder)
        library = Path(tempfile.gettempdir()) / f"warpfold-tests-{name}-{_digest(folder)}.so"
        with turn(library.with_suffix(".lock")):
            if not library.exists():
                assert COMPILER is not None
                options = [*_OPTIONS, f"-I{folder}", f"-I{HERE}"]
                new = folder / library.name
                subprocess.run([COMPILER, *options, str(HERE / f"{name}.cpp"), "-o", str(new)], check=True)
                new.rename(library)  # whole, or not there
    return ctypes.CDLL(str(library))


def _digest(folder: Path) -> str:
    """What the compiler reads, and which compiler it is."""
    assert COMPILER is not None
    version = subprocess.run([COMPILER, "--version"], check=True, capture_output=True).stdout
    digest = hashlib.sha256(version + " ".join(_OPTIONS).encode())
    for source in sorted(path for place in (folder, HERE) for path in place.iterdir() if path.is_file()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _translate(folder: Path) -> None:
    """Headers and the first parts of sources as a host compiler takes them, into `folder`."""
    replaced = 0
    for header in INCLUDE.glob("*.cuh"):
        text = header.read_text()
        for ptx, here in _PTX:
            replaced += text.count(ptx)
            text = text.replace(ptx, here)
        text = text.replace("__shared__ alignas(16)", "alignas(16) static")
        (folder / header.name).write_text(text)
    assert replaced == len(_PTX)
    for source, kernel in _CUT.items():
        text = (INCLUDE.parent / source).read_text()
        text = text[: text.index(kernel)].replace('#include "messages.cuh"', "")
        (folder / Path(source).with_suffix(".inc").name).write_text("#pragma once\n" + text)


def reduce(
    library: ctypes.CDLL, name: str, array: NDArray[Any], first: int = 0, *, omit_nan: bool = False
) -> PartialResult:
    """What the reduction `name` ("Sum<float32>") leaves of `array`."""
    words = np.full(WORDS, 0xDEADBEEF, np.uint64)
    known = library.reduce_by_name(
        name.encode(),
        ctypes.c_void_p(array.ctypes.data),
        ctypes.c_uint64(array.size),
        ctypes.c_uint64(first),
        ctypes.c_bool(omit_nan),
        ctypes.c_void_p(words.ctypes.data),
    )
    assert known, f"no REDUCE for {name} in tests/support/kernels/on_host/arithmetic.cpp"
    return PartialResult(words, first)


def generate(library: ctypes.CDLL, plan: Plan, start: int, stop: int) -> NDArray[Any]:
    """Elements start … stop−1 of a plan."""
    out = np.empty(stop - start, plan.dtype.numpy)
    words = (ctypes.c_uint64(number % (1 << 64)) for number in (plan.low, plan.span, plan.period, plan.third))
    known = library.generate_by_name(
        element(plan.dtype).encode(),
        ctypes.c_int(int(plan.formula)),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_uint64(out.size),
        ctypes.c_uint64(start),
        ctypes.c_uint64(plan.seed),
        *(ctypes.c_double(number) for number in (plan.a, plan.b, plan.c)),
        *words,
    )
    assert known, plan
    return out


def exact(
    library: ctypes.CDLL, dtype: str, kind: SumKind, arrays: tuple[NDArray[Any], ...], limbs: int, *, ahead: bool
) -> NDArray[np.int64]:
    """The total (as `include/exact_total.cuh` lays it out) that two blocks of one warp make of one array, or two, by
    the sum of a dtype, or by that of a choice: "float32 1"."""
    total = np.zeros(limbs + 1, np.int64)
    total[-1] = 0x5EED  # must stay: no digit may lie beyond
    known = library.exact_by_name(
        dtype.encode(),
        kind.value.encode(),
        ctypes.c_void_p(arrays[0].ctypes.data),
        ctypes.c_void_p(arrays[-1].ctypes.data),
        ctypes.c_uint64(arrays[0].size),
        ctypes.c_bool(ahead),
        ctypes.c_void_p(total.ctypes.data),
    )
    assert known, (dtype, kind)
    assert total[-1] == 0x5EED
    return total[:-1]
