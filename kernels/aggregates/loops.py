"""Compiled loops over the layouts of elements: their keys, the least key of each group and its place, and how many
marks each group has.

`aggregates.keys` says what a key is, and which numbers are its form. `where` has the place of the least key of each
group, the lowest of equal ones; it is empty where nobody asks for places.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.machine.jit import jit

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else
_BLOCK = 1 << 10
"""A place is looked for among so many elements, of which the least key is known."""


@jit
def make_keys(words: Any, form: Any, keys: Any) -> None:
    """keys[i] = the key of the pattern words[i]."""
    word = keys.dtype.type
    kept, turned, added, magnitude, zero, infinity, of_nan, flip = form
    for i in range(words.size):
        x = words[i]
        sign = word(-1) if x < 0 else word(0)
        key = word(word(word(x & kept) ^ word(sign & turned)) + word(sign & added))
        size = word(x & magnitude)
        key = word((word(0) if size == zero else key) ^ flip)
        keys[i] = of_nan if size > infinity else key


@jit
def least_in_rows(keys: Any, edges: Any, outputs: Any, places: Any, step: Any, best: Any, where: Any) -> None:
    """best[outputs[r]] = the least of it and of keys[edges[r]:edges[r + 1]], for every row r; element i of row r has
    the place places[r] + i · step."""
    for r in range(outputs.size):
        o, row = outputs[r], keys[edges[r] : edges[r + 1]]
        if where.size == 0:
            least = best[o]
            for i in range(row.size):
                least = row[i] if row[i] < least else least
            best[o] = least
            continue
        for start in range(0, row.size, _BLOCK):
            block = row[start : start + _BLOCK]
            least = block[0]
            for i in range(block.size):
                least = block[i] if block[i] < least else least
            place = places[r] + start * step
            if least < best[o] or (least == best[o] and place < where[o]):
                i = 0
                while block[i] != least:
                    i += 1
                place += i * step
                if least < best[o] or place < where[o]:
                    best[o], where[o] = least, place


@jit
def least_in_columns(
    keys: Any, rows: Any, width: Any, outputs: Any, places: Any, step: Any, best: Any, where: Any
) -> None:
    """Do what `least_in_rows` does for blocks of `rows` times `width` keys: column c of block b belongs to
    outputs[b] + c, and row r of it has the place places[b] + r · step."""
    for b in range(outputs.size):
        least = best[outputs[b] : outputs[b] + width]
        for r in range(rows):
            row = keys[(b * rows + r) * width : (b * rows + r + 1) * width]
            if where.size == 0:
                for c in range(width):
                    least[c] = row[c] if row[c] < least[c] else least[c]
                continue
            place, at = places[b] + r * step, where[outputs[b] : outputs[b] + width]
            for c in range(width):
                if (row[c] < least[c]) | ((row[c] == least[c]) & (place < at[c])):
                    least[c], at[c] = row[c], place


@jit
def least_of_ids(keys: Any, ids: Any, start: Any, best: Any, where: Any) -> None:
    """Do what `least_in_rows` does for elements of any groups: that with number i belongs to ids[i], and has the place
    start + i."""
    if where.size == 0:
        for i in range(keys.size):
            g = _U(ids[i])
            best[g] = min(best[g], keys[i])
        return
    for i in range(keys.size):
        g, key = _U(ids[i]), keys[i]
        if (key < best[g]) | ((key == best[g]) & (start + i < where[g])):
            best[g], where[g] = key, start + i


@jit
def marks_in_rows(marks: Any, edges: Any, outputs: Any, counts: Any) -> None:
    """counts[outputs[r]] += how many of the marks (uint8, 0 or 1) from edges[r] to edges[r + 1] are set."""
    for r in range(outputs.size):
        row = marks[edges[r] : edges[r + 1]]
        count = 0
        for i in range(row.size):
            count += row[i]
        counts[outputs[r]] += count


@jit
def marks_of_ids(marks: Any, ids: Any, counts: Any) -> None:
    """counts[ids[i]] += marks[i], or 1 where there are no marks."""
    if marks.size == 0:
        for i in range(ids.size):
            counts[_U(ids[i])] += 1
        return
    for i in range(ids.size):
        counts[_U(ids[i])] += marks[i]
