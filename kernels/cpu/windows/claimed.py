"""Exact sums of one long array by several threads, which take its pieces themselves: no thread needs the interpreter
between two pieces.

The elements are in memory, in the map of a file, in a file, or in several maps or files. The system brings a piece of a
map into memory before it is added, which fails with an error where the file has become shorter
(`kernels/sources/mapped.py`). Of files each thread reads its piece into room of its own.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

import errno as numbers
from mmap import PAGESIZE
from typing import Any

import numba

from warpfold.kernels.cpu.windows.adding import add_patterns
from warpfold.kernels.machine.jit import jit
from warpfold.kernels.machine.machine_code import (
    ENDED,
    LINE,
    WORD,
    add,
    errno,
    load,
    now_ns,
    read_only,
    read_whole,
    store,
)

# The words that all threads share are a cache line apart: word n is at `control + n * LINE`.
NEXT = 0
"""The piece that is taken next."""
STOP = 1
"""The word that is not 0 when no piece is to be begun any more."""
FAILED, ERROR = 2, 3
"""How many threads could not read, and what `read_whole` returned to the first of them."""
DONE = 4
"""Elements that were added."""
READ_NS, ADD_NS = 5, 6
"""Nanoseconds that reading and adding took, of all threads."""
COUNT, PIECE, LEAD = 7, 8, 9
"""Elements in all, elements a piece, and how many fewer the first piece has, so that the others begin where pages do.
The last piece may have fewer, too."""
DESCRIPTOR, OFFSET = 10, 11
"""The file, and where in it the elements begin. Elements at an address have no offset, and IN_MEMORY, MAPPED or
FORGOTTEN in place of a descriptor."""
STEP = 12
"""Elements that a thread brings into memory and adds at a time, of its piece."""
TABLE = 13
"""The address of a table of the pieces of several files or maps; 0 without a table. Each piece then has a row of words,
and its first element counts as number `piece * PIECE`, though the piece may have fewer elements than PIECE."""
WORDS = 14

# A row of the table: the file, where in it the piece begins, and how many elements it has. A piece of a map begins at
# an address, and has in place of a file what DESCRIPTOR has.
OF_FILE, BEGINS, ELEMENTS = 0, 1, 2
COLUMNS = 3

IN_MEMORY, MAPPED, FORGOTTEN = -1, -2, -3
"""The pages of a map stay with the process, or are forgotten when they were added."""

_types: Any = numba.types
_WORD = _types.int64
_madvise = _types.ExternalFunction("madvise", _types.int32(_WORD, _WORD, _types.int32))
_DONTNEED, _POPULATE_READ = 4, 22
_EFAULT = numbers.EFAULT


@jit
def _taken(control: Any) -> Any:
    """The index of the first element of the next piece, and that behind its last element; two equal numbers where no
    piece is left."""
    count, piece = load(control + COUNT * LINE), load(control + PIECE * LINE)
    start = add(control + NEXT * LINE, 1) * piece - load(control + LEAD * LINE)
    if start >= count or load(control + STOP * LINE) != 0:
        return count, count
    if load(control + TABLE * LINE) != 0:
        return start, start + load(_row(control, start) + ELEMENTS * WORD)
    return max(0, start), min(start + piece, count)


@jit
def _row(control: Any, start: Any) -> Any:
    """The address of the row of the piece that has element `start`."""
    return load(control + TABLE * LINE) + start // load(control + PIECE * LINE) * COLUMNS * WORD


@jit
def _begins(control: Any, start: Any, itemsize: Any) -> Any:
    """Where element `start` lies in its file, or its address in a map, as the table says."""
    return load(_row(control, start) + BEGINS * WORD) + start % load(control + PIECE * LINE) * itemsize


@jit
def _address(control: Any, start: Any, room: Any, itemsize: Any) -> Any:
    """Where element `start` of memory, of a map or of several maps lies."""
    return _begins(control, start, itemsize) if load(control + TABLE * LINE) != 0 else room + start * itemsize


@jit
def _place(control: Any, start: Any, stop: Any, room: Any, itemsize: Any) -> Any:
    """Bring elements start … stop − 1 into memory. Returns which element of a thread's array, whose address is `room`,
    the first of them is; a negative number where that failed."""
    descriptor, place, error = load(control + DESCRIPTOR * LINE), 0, 0
    if descriptor >= 0:
        offset = load(control + OFFSET * LINE) + start * itemsize
        if load(control + TABLE * LINE) != 0:
            descriptor, offset = load(_row(control, start) + OF_FILE * WORD), _begins(control, start, itemsize)
        error = read_whole(descriptor, offset, room, (stop - start) * itemsize)
    else:
        address = _address(control, start, room, itemsize)
        place = (address - room) // itemsize
        if descriptor != IN_MEMORY and _advise(address, address + (stop - start) * itemsize, _POPULATE_READ) != 0:
            # A system that does not know this advice reads the pages when they are touched.
            error = ENDED if errno() == _EFAULT else 0
    if error == 0:
        return place
    if add(control + FAILED * LINE, 1) == 0:
        store(control + ERROR * LINE, error)
    store(control + STOP * LINE, 1)
    return -1


@jit
def _advise(begin: Any, end: Any, advice: Any) -> Any:
    page = begin & -PAGESIZE
    return _madvise(page, end - page, advice)


@jit
def _added(control: Any, elements: Any, began: Any, read: Any, ended: Any) -> None:
    """Count what was added, and how long that took."""
    add(control + DONE * LINE, elements)
    add(control + READ_NS * LINE, read - began)
    add(control + ADD_NS * LINE, ended - read)


@jit
def _leave(control: Any, start: Any, stop: Any, room: Any, itemsize: Any) -> None:
    """Have the process forget the pages of elements start … stop − 1, if it is to."""
    if load(control + DESCRIPTOR * LINE) == FORGOTTEN:
        address = _address(control, start, room, itemsize)
        _advise(address, address + (stop - start) * itemsize, _DONTNEED)


@jit
def add_claimed(
    bits: Any, room: Any, control: Any, clock: Any, keep: Any, squares: Any, origin: Any, limbs: Any, space: Any
) -> Any:
    """limbs += Σ of the elements of all pieces that no other thread takes, as `add_patterns` adds them. `bits` are all
    elements, all memory from the first map to the last, or room for a piece of a file; `room` is their address, and
    `clock` that of two words. Returns the Flags of these elements, and how many they are."""
    flags, count, step = 0, 0, load(control + STEP * LINE)
    while True:
        start, stop = _taken(control)
        if start == stop:
            return flags, count
        for first in range(start, stop, step):
            last, began = min(first + step, stop), now_ns(clock)
            at = _place(control, first, last, room, bits.itemsize)
            if at < 0:
                return flags, count
            part, read = read_only(bits[at : at + last - first]), now_ns(clock)
            flags |= add_patterns(part, keep, squares, origin, limbs, space)
            count += last - first
            _added(control, last - first, began, read, now_ns(clock))
        _leave(control, start, stop, room, bits.itemsize)
