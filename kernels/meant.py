"""Reductions of sources whose integers stand for something else: the integers are reduced, then the value is made.

Whatever reads the elements of a source, and is not here, takes them for values: it refuses a source with a meaning.
"""

from dataclasses import replace

from warpfold.kernels.backend import Reduction
from warpfold.kernels.complexes import ComplexNumbers, Run, reduce_complex
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.meaning import Meaning, integer_op, is_plain
from warpfold.kernels.operands import check_arity
from warpfold.kernels.ops import Finish, NanPolicy, Op, empty_value
from warpfold.kernels.sequential import Elements, SequentialSource


def meaning_of(source: Elements) -> Meaning | None:
    """What the elements stand for; None where they are values."""
    return source.meaning if isinstance(source, SequentialSource) else None


def refuse_meaning(source: Elements, doing: str, field: str) -> None:
    """Raise InvalidInput that names `field` where elements stand for something else, which `doing` does not take."""
    meaning = meaning_of(source)
    if meaning is not None:
        raise InvalidInput(f"{doing} takes no {meaning.name} so far; cast the column to float64 or int64 first", field)


def is_meant(source: Elements, other: Elements | None) -> bool:
    """Whether elements of a source, or of a second one, stand for something else."""
    return meaning_of(source) is not None or (other is not None and meaning_of(other) is not None)


def itemsize_of(source: Elements) -> int:
    """Bytes an element: those of both parts of a complex number."""
    return source.dtype.itemsize * (2 if isinstance(meaning_of(source), ComplexNumbers) else 1)


def reduce_meant(op: Op, source: Elements, other: Elements | None, nan_policy: NanPolicy, run: Run) -> Reduction:
    """Reduce what the elements of one source or two stand for; `run` reduces elements that are values on a backend.

    The state would be that of the integers, so there is none. Raises InvalidInput naming "op" where `op` has no value
    of such elements.
    """
    for part in (source, other):
        if part is not None and isinstance(meaning_of(part), ComplexNumbers):
            check_arity(op, other=other is not None, ddof=0)
            return reduce_complex(op, source, other, nan_policy, run)
    if other is not None:
        refuse_meaning(source, op.name, "op")
        refuse_meaning(other, op.name, "op")
    meaning = meaning_of(source)
    assert meaning is not None, "the elements stand for something"
    assert isinstance(source, SequentialSource), "only those have a meaning"
    meaning.check(op)
    reduction = replace(run(replace(source, meaning=None), integer_op(op)), op=op.name)
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
