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


@jit
def bring_together(keys: Any, ids: Any, places: Any, whole: Any) -> None:
    """Write each key to the place behind the last one of its group: `places` has the next place of each group."""
    for i in range(keys.size):
        g = _U(ids[i])
        whole[_U(places[g])] = keys[i]
        places[g] += 1


@jit
def bring_runs(keys: Any, groups: Any, lengths: Any, places: Any, whole: Any) -> None:
    """Do what `bring_together` does for runs of keys: run r belongs to groups[r] and has lengths[r] keys."""
    at = 0
    for r in range(groups.size):
        g, length = _U(groups[r]), lengths[r]
        whole[places[g] : places[g] + length] = keys[at : at + length]
        places[g] += length
        at += length


_FEW = 24
"""Keys that are sorted one by one: fewer than it is worth to part."""


@jit
def place_ranks(keys: Any, bounds: Any, ranks: Any, which: Any, first: Any, stop: Any, most: Any, placed: Any) -> None:
    """placed[g, k] = the key of rank ranks[which[g], k] among keys[bounds[g]:bounds[g + 1]], for the groups from
    `first` to `stop` that have keys, and no more than `most`. Ranks rise with k. The keys of a group are brought in
    another order."""
    chance = _U(88172645463325252)
    for g in range(first, stop):
        low, end, wanted = bounds[g], bounds[g + 1], ranks[which[g]]
        if low == end or end - low > most:
            continue
        for k in range(wanted.size):
            rank = bounds[g] + wanted[k]
            if rank >= low:  # no key before `low` is larger than one behind it
                top = end - 1
                while top - low >= _FEW:
                    low, top, chance = _parted(keys, low, top, rank, chance)
                _sort(keys, low, top)
                low = top + 1
            placed[g, k] = keys[_U(rank)]


@jit
def _parted(keys: Any, low: Any, top: Any, rank: Any, chance: Any) -> Any:
    """Part the keys from `low` to `top`, and return the ends of the part in which `rank` is. The pivot is the middle
    one of three keys from anywhere, so that no order of the keys makes it a bad choice each time."""
    chance ^= chance << _U(13)
    chance ^= chance >> _U(7)
    chance ^= chance << _U(17)
    size = _U(top - low + 1)
    a, b = keys[_U(low) + chance % size], keys[_U(low) + (chance >> _U(20)) % size]
    c = keys[_U(low) + (chance >> _U(40)) % size]
    middle = max(min(a, b), min(max(a, b), c))
    i, j = low, top
    while i <= j:
        while keys[_U(i)] < middle:
            i += 1
        while keys[_U(j)] > middle:
            j -= 1
        if i <= j:
            keys[_U(i)], keys[_U(j)] = keys[_U(j)], keys[_U(i)]
            i += 1
            j -= 1
    if rank <= j:
        return low, j, chance
    return (i, top, chance) if rank >= i else (rank, rank, chance)


@jit
def _sort(keys: Any, low: Any, top: Any) -> None:
    for i in range(low + 1, top + 1):
        key, j = keys[_U(i)], i
        while j > low and keys[_U(j - 1)] > key:
            keys[_U(j)] = keys[_U(j - 1)]
            j -= 1
        keys[_U(j)] = key


@jit
def count_distinct(keys: Any, bounds: Any, of_nan: Any, omit: Any, distinct: Any) -> None:
    """distinct[g] = how many different keys are among keys[bounds[g]:bounds[g + 1]], which are put in order; without
    the key `of_nan` where `omit` is set."""
    for g in range(distinct.size):
        row = keys[bounds[g] : bounds[g + 1]]
        if row.size < _FEW:
            _sort(row, 0, row.size - 1)
        else:
            row.sort()
        for i in range(row.size):
            distinct[g] += (i == 0 or row[i] != row[i - 1]) and not (omit and row[i] == of_nan)


@jit
def most_frequent(keys: Any, bounds: Any, of_nan: Any, floats: Any, omit: Any, modes: Any) -> None:
    """modes[g] = the most frequent key among keys[bounds[g]:bounds[g + 1]], which are put in order, the least
    of equally frequent ones. Of floats it is the key `of_nan`, the largest, where a group has one, unless `omit` leaves
    them out."""
    for g in range(modes.size):
        row = keys[bounds[g] : bounds[g + 1]]
        if row.size < _FEW:
            _sort(row, 0, row.size - 1)
        else:
            row.sort()
        end = row.size
        if floats and end and row[end - 1] == of_nan:
            if not omit:
                modes[g] = of_nan
                continue
            while end and row[end - 1] == of_nan:
                end -= 1
        most, start = 0, 0
        for i in range(end):
            start = i if row[i] != row[start] else start
            if i - start >= most:
                most, modes[g] = i - start + 1, row[i]


# --- keys by their digits
#
# A key less the `least` one, as an unsigned number, is u. Its prefix is u >> `shift`. All prefixes that are looked for
# are sorted. Those with the digit d = (u >> `top`) + 1 are prefixes[starts[d]:starts[d + 1]]. There are 2**16 digits
# from 1 on. The digit 0 is for keys below the least, and the last one for all above the others.

_LAST = np.uint64((1 << 16) + 1)


@jit
def _digit(key: Any, u: Any, base: Any, top: Any) -> Any:
    return _U(0) if key < base else min((u >> top) + _U(1), _LAST)


@jit
def count_digits(keys: Any, least: Any, top: Any, counts: Any) -> None:
    """counts[d] += how many keys have the digit d."""
    base = np.int64(least)
    for i in range(keys.size):
        counts[_digit(keys[i], _U(keys[i]) - least, base, top)] += 1


@jit
def count_next(
    keys: Any, least: Any, top: Any, starts: Any, prefixes: Any, shift: Any, below: Any, counts: Any
) -> None:
    """counts[p, n] += how many keys have the prefix prefixes[p], which the bits n follow down to bit `below`."""
    mask, base = _U(counts.shape[1] - 1), np.int64(least)
    for i in range(keys.size):
        u = _U(keys[i]) - least
        digit = _digit(keys[i], u, base, top)
        for p in range(starts[digit], starts[digit + _U(1)]):
            if prefixes[_U(p)] == u >> shift:
                counts[_U(p), (u >> below) & mask] += 1


@jit
def gather(keys: Any, least: Any, top: Any, starts: Any, prefixes: Any, shift: Any, gathered: Any) -> int:
    """Write the keys that have one of the prefixes to `gathered`, and return how many these are."""
    count, base = 0, np.int64(least)
    for i in range(keys.size):
        u = _U(keys[i]) - least
        digit = _digit(keys[i], u, base, top)
        for p in range(starts[digit], starts[digit + _U(1)]):
            if prefixes[_U(p)] == u >> shift:
                gathered[_U(count)] = keys[i]
                count += 1
    return count


@jit
def pick(firsts: Any, seconds: Any, ids: Any, first: Any, second: Any) -> None:
    """Keep the least pairs (firsts[i], seconds[i]) of each group ids[i], as many as a row of `first` and `second` has:
    rows rise."""
    last = _U(first.shape[1] - 1)
    for i in range(ids.size):
        g, a, b = _U(ids[i]), firsts[i], seconds[i]
        if a > first[g, last] or (a == first[g, last] and b >= second[g, last]):
            continue
        j = last
        while j > _U(0) and (a < first[g, j - _U(1)] or (a == first[g, j - _U(1)] and b < second[g, j - _U(1)])):
            first[g, j], second[g, j] = first[g, j - _U(1)], second[g, j - _U(1)]
            j -= _U(1)
        first[g, j], second[g, j] = a, b


@jit
def count_bins(keys: Any, ids: Any, edges: Any, last: Any, shift: Any, starts: Any, counts: Any) -> None:
    """counts[ids[i], b] += 1 for each key from edges[b] on and below edges[b + 1], or up to `last` in the last bin;
    without `ids` all belong to group 0. A key whose distance from the first edge begins with the bits d, those from
    `shift` on, lies in one of the bins starts[d] to starts[d + 1]."""
    bins = counts.shape[1]
    for i in range(keys.size):
        key = keys[i]
        if key > last or key < edges[0]:
            continue
        digit = (_U(key) - _U(edges[0])) >> shift
        b, top = starts[digit], starts[digit + _U(1)]
        while b < top:
            middle = (b + top + 1) >> 1
            if edges[_U(middle)] <= key:
                b = middle
            else:
                top = middle - 1
        counts[_U(ids[i]) if ids.size else _U(0), _U(min(b, bins - 1))] += 1
