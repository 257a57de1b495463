"""The least key of each row of an array, its place, and the number of marks, compiled. `grouped.selecting` says what a
key is."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

from warpfold.kernels.jit import jit


@jit
def least_in_rows(keys: Any, edges: Any, outputs: Any, best: Any) -> None:
    """best[outputs[r]] = the least of it and of the keys from edges[r] to edges[r + 1], for every row r."""
    for r in range(outputs.size):
        least = best[outputs[r]]
        row = keys[edges[r] : edges[r + 1]]
        for i in range(row.size):
            least = row[i] if row[i] < least else least
        best[outputs[r]] = least


@jit
def places_in_rows(keys: Any, edges: Any, outputs: Any, places: Any, step: Any, best: Any, where: Any) -> None:
    """Do what `least_in_rows` does, and write the lowest place of the least key to `where`: element i of row r has the
    place places[r] + i · step."""
    for r in range(outputs.size):
        o = outputs[r]
        row = keys[edges[r] : edges[r + 1]]
        if row.size == 0:
            continue
        least = row[0]
        for i in range(row.size):
            least = row[i] if row[i] < least else least
        if least > best[o]:
            continue
        i = 0
        while row[i] != least:
            i += 1
        place = places[r] + i * step
        if least < best[o] or place < where[o]:
            best[o], where[o] = least, place


@jit
def marks_in_rows(marks: Any, edges: Any, outputs: Any, counts: Any) -> None:
    """counts[outputs[r]] += how many of the marks (uint8, 0 or 1) from edges[r] to edges[r + 1] are set."""
    for r in range(outputs.size):
        row = marks[edges[r] : edges[r + 1]]
        count = 0
        for i in range(row.size):
            count += row[i]
        counts[outputs[r]] += count
