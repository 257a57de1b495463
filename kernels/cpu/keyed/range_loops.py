"""Compiled loops that bring rows in the order of ranges of their keys."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.machine.jit import jit

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else


@jit
def number_ranges(keys: Any, least: Any, shift: Any, cells: Any, numbers: Any, counts: Any) -> None:
    """numbers[i] = the range of keys[i], and counts[r] += 1 for every row of range r. A key lies (key − least) >> shift
    cells behind the first, or in the first or the last cell if that is outside of them; cells[c] is the range of a
    cell. Keys are integers with or without sign, all of one dtype with `least`."""
    last = _U(cells.size - 1)
    for i in range(keys.size):
        key = keys[i]
        cell = (_U(key) - _U(least)) >> shift if key > least else _U(0)  # modulo 2**64, as the difference is positive
        number = cells[min(cell, last)]
        numbers[i] = number
        counts[_U(number)] += 1


@jit
def scatter(elements: Any, numbers: Any, ends: Any, out: Any) -> None:
    """Write the elements of range r, in their order, to out[ends[r]] and the places behind it, for every r."""
    places = ends.copy()
    for i in range(elements.size):
        number = _U(numbers[i])
        place = places[number]
        out[_U(place)] = elements[i]
        places[number] = place + 1
