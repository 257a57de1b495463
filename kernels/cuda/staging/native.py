"""Machine code of the threads that read files into pinned memory, and of the thread that has the GPU copy it.

Both go on without the interpreter's lock: a hand-over between two Python threads takes up to 0.1 ms on a machine with
16 cores, in which the bus carries 5 MB. The threads share *words*, integers of 64 bits at addresses, which are read and
written as atomics; `kernels.cuda.staging.lanes` owns the memory behind all addresses. The functions of CUDA are called
at addresses, too, so that tests can have others called.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numba
from llvmlite import ir

from warpfold.kernels.jit import intrinsic, jit
from warpfold.kernels.machine_code import ENDED as FILE_ENDED
from warpfold.kernels.machine_code import LINE, WORD, add, errno, load, now_ns, read_whole, store

# Words that all threads share are a cache line apart: word n is at `control + n * LINE`.
NEXT = 0
"""The part that is claimed next."""
FREED = 1
"""The number of parts, counted from the first, that have reached the GPU."""
STOP = 2
"""The word that is not 0 when no thread is to read or copy any more."""
FAILED, ERROR = 3, 4
"""How many threads failed, and the number of the system's error that the first of them met, 0 at the end of a file."""
ACTIVE = 5
"""Threads that have not finished the current sources."""
READ_NS = 6
"""Nanoseconds that reading took, of all threads."""
ENDED = 7
"""The word that is not 0 when the threads are to end."""
PARTS, SLOTS = 8, 9
"""How many parts there are, and how many places of pinned memory they take in turns."""
TABLE, PLACES = 10, 11
"""Addresses: of the table of parts, and of the addresses of the places."""
WAKE = 12
"""The eventfd from which the threads learn that there is work."""
STARTED, DONE = 13, 14
"""Runs of parts whose copies were put on the stream, and of these those that have ended."""
COPIED_NS = 15
"""Nanoseconds that the copies that have ended took."""
WORDS = 16

# The table has a row of these words for each part.
DESCRIPTOR, OFFSET, BYTES, READY = 0, 1, 2, 3
"""The file's descriptor, or -1 for memory; where in the file, or in memory, the part begins; its length; and 1 when it
is in pinned memory."""
BEGAN, READ, SENT = 4, 5, 6
"""Nanoseconds of the clock: when reading the part began, when that ended, and when its copy was put on the stream."""
COLUMNS = 7

ENOUGH = 2
"""Copies under way that keep the bus busy. Each takes 7 us beside its time on the bus, so that fewer are better."""

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
def _call3(context: Any, function: Any, first: Any, second: Any, third: Any) -> Any:
    return _caller(3)


@intrinsic
def _call4(context: Any, function: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    return _caller(4)


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
    table, places = load(control + TABLE * LINE), load(control + PLACES * LINE)
    while True:
        part = add(control + NEXT * LINE, 1)
        if part >= parts:
            return
        idle = 0
        while part - load(control + FREED * LINE) >= slots and load(control + STOP * LINE) == 0:
            idle = _pause(idle)
        if load(control + STOP * LINE) != 0:
            return
        row = table + part * COLUMNS * WORD
        began = now_ns(scratch)
        if not _fill(control, row, load(places + part % slots * WORD)):
            return
        ended = now_ns(scratch)
        add(control + READ_NS * LINE, ended - began)
        store(row + BEGAN * WORD, began)
        store(row + READ * WORD, ended)
        store(row + READY * WORD, 1)


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
def retire(control: Any, driver: Any, scratch: Any) -> Any:
    """Let threads read into the places of all parts that have reached the GPU. The error of CUDA, or 0."""
    events, most, runs = driver[4], driver[5], driver[6]
    while True:
        done = load(control + DONE * LINE)
        if done == load(control + STARTED * LINE):
            return 0
        at = done % most
        end = load(events + (2 * at + 1) * WORD)
        answer = _call1(driver[2], end)
        if answer != 0:
            return 0 if answer == NOT_READY else answer
        # Milliseconds, as a float32 in the lower half of the word.
        answer = _call3(driver[3], scratch, load(events + 2 * at * WORD), end)
        if answer != 0:
            return answer
        add(control + COPIED_NS * LINE, nanoseconds(load(scratch)))
        store(control + FREED * LINE, load(runs + at * WORD))
        store(control + DONE * LINE, done + 1)


@intrinsic
def _as_float32(context: Any, word: Any) -> Any:
    """The float32 whose bits are the lower half of `word`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.trunc(arguments[0], _I32), ir.FloatType())

    return _types.float32(_WORD), generate


@jit
def nanoseconds(word: Any) -> Any:
    """The milliseconds in the lower half of `word`, as nanoseconds."""
    return int(_as_float32(word) * 1e6)


@jit
def _run_from(control: Any, part: Any, stop: Any, together: Any) -> Any:
    """How many bytes of parts that are read already lie side by side from `part` on, the part behind them, and whether
    the run can become no longer: it ends at `stop`, or where memory that was allocated together does."""
    table, places = load(control + TABLE * LINE), load(control + PLACES * LINE)
    slots = load(control + SLOTS * LINE)
    place, nbytes, end = load(places + part % slots * WORD), load(table + (part * COLUMNS + BYTES) * WORD), part + 1
    while end < stop and end % slots % together != 0 and load(places + end % slots * WORD) == place + nbytes:
        row = table + end * COLUMNS * WORD
        if load(row + READY * WORD) == 0:
            return nbytes, end, False
        nbytes, end = nbytes + load(row + BYTES * WORD), end + 1
    return nbytes, end, True


@jit
def copy_parts(control: Any, driver: Any, scratch: Any, first: Any, stop: Any, target: Any) -> Any:
    """Put the copies of parts first … stop − 1 to the GPU's memory at `target` on the stream, each when it is read.
    Neighbours are copied together: while ENOUGH copies are under way, a part that is read waits for them. Returns the
    error of CUDA, or 0; at once where reading failed.

    `driver` has the addresses of cuMemcpyHtoDAsync, cuEventRecord, cuEventQuery and cuEventElapsedTime; the address of
    pairs of events; how many pairs there are; the address of a word for each pair; the stream; and how many places of
    pinned memory were allocated together: no copy goes beyond such a block."""
    table, places = load(control + TABLE * LINE), load(control + PLACES * LINE)
    slots = load(control + SLOTS * LINE)
    events, most, runs, together = driver[4], driver[5], driver[6], driver[8]
    part = first
    while part < stop:
        idle, row, nbytes, end = 0, table + part * COLUMNS * WORD, 0, part
        while True:
            answer = retire(control, driver, scratch)
            if answer != 0:
                return answer
            in_flight = load(control + STARTED * LINE) - load(control + DONE * LINE)
            if load(row + READY * WORD) != 0 and in_flight < most:
                nbytes, end, whole = _run_from(control, part, stop, together)
                if whole or in_flight < ENOUGH:
                    break
            if load(control + FAILED * LINE) != 0:
                return 0
            idle = _pause(idle)
        started = load(control + STARTED * LINE)
        at = started % most
        answer = _call2(driver[1], load(events + 2 * at * WORD), driver[7])
        if answer == 0:
            answer = _call4(driver[0], target, load(places + part % slots * WORD), nbytes, driver[7])
        if answer == 0:
            answer = _call2(driver[1], load(events + (2 * at + 1) * WORD), driver[7])
        if answer != 0:
            return answer
        store(runs + at * WORD, end)
        store(control + STARTED * LINE, started + 1)
        sent = now_ns(scratch)
        for number in range(part, end):
            store(table + (number * COLUMNS + SENT) * WORD, sent)
        part, target = end, target + nbytes
    return 0
