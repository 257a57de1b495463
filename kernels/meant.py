"""Reductions of sources whose integers stand for something else: the integers are reduced, then the value is made.

Whatever reads the elements of a source, and is not here, takes them for values: it refuses a source with a meaning.
"""

from collections.abc import Callable
from dataclasses import replace

from warpfold.kernels.backend import Reduction
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.meaning import Meaning, integer_op, is_plain
from warpfold.kernels.ops import Finish, Op, empty_value
from warpfold.kernels.sequential import Elements, SequentialSource


def meaning_of(source: Elements) -> Meaning | None:
    """What the elements stand for; None where they are values."""
    return source.meaning if isinstance(source, SequentialSource) else None


def refuse_meaning(source: Elements, doing: str, field: str) -> None:
    """Raise InvalidInput that names `field` where elements stand for something else, which `doing` does not take."""
    meaning = meaning_of(source)
    if meaning is not None:
        raise InvalidInput(f"{doing} takes no {meaning.name} so far; cast the column to float64 or int64 first", field)


def reduce_meant(
    op: Op,
    source: SequentialSource,
    other: Elements | None,
    reduce_integers: Callable[[SequentialSource, str], Reduction],
) -> Reduction:
    """Reduce what the elements of `source` stand for; `reduce_integers` reduces them by the op of a name, on a backend.

    The state would be that of the integers, so there is none. Raises InvalidInput naming "op" where `op` has no value
    of such elements.
    """
    meaning = source.meaning
    assert meaning is not None, "the elements stand for something"
    meaning.check(op)
    if other is not None:
        raise InvalidInput(f"{op.name} takes no second source", "other")
    reduction = reduce_integers(replace(source, meaning=None), integer_op(op))
    reduction = replace(reduction, op=op.name)
    if is_plain(op):
        return reduction
    if op.finish is Finish.MEAN and not reduction.count:
        empty_value(op, source.dtype)  # raises
    meant = meaning.meant(op, int(reduction.value), reduction.count)
    return replace(
        reduction,
        value=meant.value,
        dtype=meant.dtype,
        correctly_rounded=True,
        state=None,
        decimal=meant.decimal,
        time=meant.time,
    )
