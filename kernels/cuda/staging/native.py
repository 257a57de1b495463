"""Machine code of the threads that read files into pinned memory, and of the thread that has the GPU pull it from
there.

Both go on without the interpreter's lock: a hand-over between two Python threads takes up to 0.1 ms on a machine with
16 cores, in which the bus carries 5 MB. The threads share *words*, integers of 64 bits at addresses, which are read and
written as atomics; `kernels.cuda.staging.lanes` owns the memory behind all addresses. The functions of CUDA are called
at addresses, too, so that tests can have others called.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numba
from llvmlite import ir

from warpfold.kernels.machine.jit import intrinsic, jit
from warpfold.kernels.machine.machine_code import ENDED as FILE_ENDED
from warpfold.kernels.machine.machine_code import LINE, WORD, add, errno, load, now_ns, read_whole, store

# Words that all threads share are a cache line apart: word n is at `control + n * LINE`.
NEXT = 0
"""The part that is claimed next."""
STOP = 1
"""The word that is not 0 when no thread is to read or copy any more."""
FAILED, ERROR = 2, 3
"""How many threads failed, and the number of the system's error that the first of them met, 0 at the end of a file."""
ACTIVE = 4
"""Threads that have not finished the current sources."""
READ_NS = 5
"""Nanoseconds that reading took, of all threads."""
ENDED = 6
"""The word that is not 0 when the threads are to end."""
PARTS, SLOTS = 7, 8
"""How many parts there are, and how many places of pinned memory they take in turns."""
TABLE, PLACES, TAKEN = 9, 10, 11
"""Addresses: of the table of parts, of the words of the places, and of a word for each place in which the GPU writes
the number of the last part that it took from there, plus 1."""
WAKE = 12
"""The eventfd from which the threads learn that there is work."""
WORDS = 13

# The table has a row of these words for each part.
DESCRIPTOR, OFFSET, BYTES, WHERE = 0, 1, 2, 3
"""The file's descriptor, or -1 for memory; where in the file, or in memory, the part begins; its length; and how many
bytes of its piece come before it."""
BEGAN, READ = 4, 5
"""Nanoseconds of the clock: when reading the part began, and when that ended."""
COLUMNS = 6

# The words of a place of pinned memory, a cache line for each place, as `sources/pull.cu` reads them.
SEQUENCE, ADDRESS, PLACE_BYTES, PLACE_WHERE = 0, 1, 2, 3
"""The number of the part that was read into the place, plus 1, which is written last; the address of the memory; the
part's length; and how many bytes of its piece come before it."""
PLACE_COLUMNS = 8

PATIENCE_NS = 4_000_000
"""Half of the time for which the GPU waits for a part before it gives up (`GIVE_UP_NS` in `sources/pull.cu`): until
then a launch is sure to take all parts that are read."""

LAUNCHED_THREADS = 512
"""The threads of a block of the kernel that pulls."""

NOT_READY = 600
"""The answer of cuEventQuery while the work before an event goes on."""

_types: Any = numba.types
_I32, _I64, _WORD = ir.IntType(32), ir.IntType(64), _types.int64
_read = _types.ExternalFunction("read", _WORD(_types.int32, _WORD, _WORD))
_memcpy = _types.ExternalFunction("memcpy", _WORD(_WORD, _WORD, _WORD))
_yield = _types.ExternalFunction("sched_yield", _types.int32())
_usleep = _types.ExternalFunction("usleep", _types.int32(_types.uint32))

_EINTR = 4
_YIELDS, _SLEEP_US = 256, 20


def _caller(count: int) -> Any:
    """What calls the C function at an address with `count` words, and returns its int."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_I32, [_I64] * count)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return _types.int32(*[_WORD] * (count + 1)), generate


@intrinsic
def _call1(context: Any, function: Any, first: Any) -> Any:
    return _caller(1)


@intrinsic
def _call2(context: Any, function: Any, first: Any, second: Any) -> Any:
    return _caller(2)


@intrinsic
def _call11(
    context: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any, k: Any
) -> Any:
    return _caller(11)


@jit
def _pause(idle: Any) -> Any:
    """Wait a little, and longer when one has waited `idle` times already; return `idle` + 1."""
    if idle < _YIELDS:
        _yield()
    else:
        _usleep(_SLEEP_US)
    return idle + 1


@jit
def _fail(control: Any, error: Any) -> None:
    if add(control + FAILED * LINE, 1) == 0:
        store(control + ERROR * LINE, error)
    store(control + STOP * LINE, 1)


@jit
def _fill(control: Any, row: Any, place: Any) -> Any:
    """Read one part into pinned memory; whether that went well."""
    descriptor, offset = load(row + DESCRIPTOR * WORD), load(row + OFFSET * WORD)
    left = load(row + BYTES * WORD)
    if descriptor < 0:
        _memcpy(place, offset, left)
        return True
    error = read_whole(descriptor, offset, place, left)
    if error != 0:
        _fail(control, 0 if error == FILE_ENDED else error)
    return error == 0


@jit
def read_parts(control: Any, scratch: Any) -> None:
    """Claim and read parts until there are no more. Several threads do so at once, each with its own `scratch`."""
    parts, slots = load(control + PARTS * LINE), load(control + SLOTS * LINE)
    table, places, taken = load(control + TABLE * LINE), load(control + PLACES * LINE), load(control + TAKEN * LINE)
    while True:
        part = add(control + NEXT * LINE, 1)
        if part >= parts:
            return
        idle, slot = 0, part % slots
        while load(taken + slot * WORD) <= part - slots and load(control + STOP * LINE) == 0:
            idle = _pause(idle)
        if load(control + STOP * LINE) != 0:
            return
        row, place = table + part * COLUMNS * WORD, places + slot * PLACE_COLUMNS * WORD
        began = now_ns(scratch)
        if not _fill(control, row, load(place + ADDRESS * WORD)):
            return
        ended = now_ns(scratch)
        store(place + PLACE_BYTES * WORD, load(row + BYTES * WORD))
        store(place + PLACE_WHERE * WORD, load(row + WHERE * WORD))
        store(place + SEQUENCE * WORD, part + 1)
        add(control + READ_NS * LINE, ended - began)
        store(row + BEGAN * WORD, began)
        store(row + READ * WORD, ended)


@jit
def serve(control: Any, scratch: Any) -> None:
    """Wait for sources and read them, again and again, until ENDED is set. `scratch` is the address of two words."""
    wake = load(control + WAKE * LINE)
    while True:
        if _read(wake, scratch, WORD) != WORD:
            if errno() == _EINTR:
                continue
            return
        if load(control + ENDED * LINE) != 0:
            return
        read_parts(control, scratch)
        add(control + ACTIVE * LINE, -1)


@jit
def wait_idle(control: Any) -> None:
    """Return when no thread reads any more."""
    idle = 0
    while load(control + ACTIVE * LINE) > 0:
        idle = _pause(idle)


@jit
def pull_parts(driver: Any, event: Any, first: Any, stop: Any, target: Any, again: Any) -> Any:
    """Put on the stream the kernel that has the GPU pull parts first … stop − 1 into its memory at `target`, each when
    it is read, and `event` behind it; `again` is 1 where an earlier launch may have taken some. The error of CUDA, or
    0.

    `driver` has the addresses of cuLaunchKernel, cuEventRecord and cuEventQuery; the kernel, the stream and the number
    of blocks; and the addresses of the kernel's arguments and of their addresses."""
    arguments = driver[6]
    store(arguments + 4 * WORD, first)
    store(arguments + 5 * WORD, stop)
    store(arguments + 6 * WORD, target)
    store(arguments + 7 * WORD, again)
    blocks = min(driver[5], stop - first)
    answer = _call11(driver[0], driver[3], blocks, 1, 1, LAUNCHED_THREADS, 1, 1, 0, driver[4], driver[7], 0)
    return answer if answer != 0 else _call2(driver[1], event, driver[4])


@jit
def await_parts(
    control: Any, driver: Any, scratch: Any, event: Any, first: Any, stop: Any, target: Any, launched: Any
) -> Any:
    """Return when parts first … stop − 1 are read, which the GPU was asked at the time `launched` to pull; the last of
    them are on their way. Returns the error of CUDA, or 0; at once where reading failed.

    The kernel gives up waiting for a part that comes late, and is then launched again for what is left."""
    slots, places = load(control + SLOTS * LINE), load(control + PLACES * LINE)
    part, known, idle, answer = first, first, 0, 0
    while answer == 0:
        while part < stop and load(places + part % slots * PLACE_COLUMNS * WORD) > part:
            part, idle = part + 1, 0
        now = now_ns(scratch)
        late = now - launched > PATIENCE_NS
        if part == stop:
            # A block may have given up a moment before the last part was read.
            return pull_parts(driver, event, first, stop, target, 1) if late else 0
        if load(control + FAILED * LINE) != 0:
            return 0
        if late and part > known:
            answer = _call1(driver[2], event)
            if answer == 0:
                launched, known = now, part
                answer = pull_parts(driver, event, first, stop, target, 1)
            elif answer == NOT_READY:
                answer = 0
        idle = _pause(idle)
    return answer
