"""Machine code of threads that stand by: each takes one job after another, without the interpreter's lock.

A job is a row of words, of which the first names the compiled function that does it. `kernels.cpu.standing` owns the
memory behind all addresses, and says when a job is there.
"""

from typing import Any

import numba
from llvmlite import ir

from warpfold.kernels.machine.jit import intrinsic, jit
from warpfold.kernels.machine.machine_code import LINE, WORD, add, errno, load

# Words that all threads share are a cache line apart: word n is at `control + n * LINE`.
TAKEN = 0
"""How many jobs were taken."""
WAKE = 1
"""The eventfd, a semaphore that counts the jobs that are there."""
QUEUE, PLACES = 2, 3
"""The address of a ring of the addresses of jobs, and how many it has room for."""
WORDS = 4

# The first words of a job.
FUNCTION = 0
"""The address of a compiled function that takes the address of the job."""
LEFT, DONE, ONE = 1, 2, 3
"""The address of a word that counts the jobs not yet done of a reduction; the eventfd that is written when none is
left; and the address of a word that holds 1."""
OWN = 4
"""The first word that belongs to the function."""

_types: Any = numba.types
_I64, _WORD = ir.IntType(64), _types.int64
_read = _types.ExternalFunction("read", _WORD(_types.int32, _WORD, _WORD))
_write = _types.ExternalFunction("write", _WORD(_types.int32, _WORD, _WORD))
_EINTR = 4


@intrinsic
def _call(context: Any, function: Any, word: Any) -> Any:
    """Call the function at an address with a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return _types.void(_WORD, _WORD), generate


@jit
def finish(left: Any, done: Any, increment: Any, jobs: Any) -> None:
    """Note that so many jobs are done: `left`, `done` and `increment` are the words of the job. Whoever waits for the
    last of them keeps the memory of all until `done` is written."""
    if add(left, -jobs) == jobs:
        while _write(done, increment, WORD) < 0 and errno() == _EINTR:
            pass


@jit
def serve(control: Any, scratch: Any) -> None:
    """Wait for jobs and do them, one after another. `scratch` is the address of a word."""
    wake = load(control + WAKE * LINE)
    while True:
        if _read(wake, scratch, WORD) != WORD:
            if errno() == _EINTR:
                continue
            return
        number = add(control + TAKEN * LINE, 1) % load(control + PLACES * LINE)
        job = load(load(control + QUEUE * LINE) + number * WORD)
        left, done, increment = load(job + LEFT * WORD), load(job + DONE * WORD), load(job + ONE * WORD)
        _call(load(job + FUNCTION * WORD), job)
        finish(left, done, increment, 1)
