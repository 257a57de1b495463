"""Parts of an array, reduced by themselves and put together in any order: the values and the states of the whole."""

from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.gpu.adversarial import adversarial
from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts import array_parts
from warpfold.kernels.parts.array_partitions import joined, reduce_part
from warpfold.kernels.parts.array_parts import cut_array
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation
from warpfold.kernels.parts.merged import Merged, merge
from warpfold.kernels.query import Shaped
from warpfold.kernels.source import ArraySource

FLOAT64 = DTYPES["float64"]
LENGTHS = st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=1, max_size=4).map(tuple)


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


@st.composite
def groupings(draw: st.DrawFn, how: str, shape: tuple[int, ...]) -> Grouping:
    """Axes, or segments of one length or of any lengths."""
    if how == "axes":
        return AlongAxes(tuple(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))), draw(st.booleans()))
    if how == "length":
        return Segments(length=draw(st.integers(1, prod(shape) + 1)))
    return Segments(tuple(sorted(draw(st.lists(st.integers(0, prod(shape)), min_size=2, max_size=9)))))


def shown(reduction: GroupedReduction) -> tuple[Any, ...]:
    states = [[column[at] for at in range(len(column))] for column in reduction.states]
    return [repr(value) for value in reduction.listed()], list(reduction.counted()), states


@pytest.mark.parametrize("how", ["axes", "length", "offsets"])
@settings(deadline=None, max_examples=50)
@given(
    (LENGTHS | st.tuples(*[st.sampled_from([2, 3, 5, 9])] * 3)),
    st.sampled_from(["sum", "mean", "var", "min", "argmax"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([2, 3, 9, 40]),
    st.sampled_from([0, 64]),
    st.data(),
)
def test_any_parts_have_the_values_of_the_whole_in_their_order(  # noqa: PLR0917
    how: str,
    shape: tuple[int, ...],
    op: str,
    fortran: bool,
    in_memory: bool,
    number: int,
    state: int,
    data: st.DataObject,
) -> None:
    array = adversarial("any finite", FLOAT64, prod(shape), data.draw(st.integers(0, 99))).reshape(shape)
    array = np.asfortranarray(array) if fortran else array
    grouping, row = data.draw(groupings(how, shape)), op_named(op)
    options: dict[str, Any] = {"nan_policy": NanPolicy.OMIT, "ddof": int(row.ddof), "states": row.adds}
    with pytest.MonkeyPatch.context() as patch:  # so many bytes a state, beside which a part is worth its values or not
        patch.setattr(array_parts, "_STATE_BYTES", state)
        parts = list(cut_array(shape, grouping, number, 8, in_memory=in_memory or fortran))
    reduced = [
        reduce_part(
            backend(),
            Shaped(source=part.taken(ArraySource(array)), op=row, shape=part.shape, grouping=part.grouping, **options),
            part,
        )
        for part in parts
    ]
    partials = data.draw(st.permutations([each.partial for each in reduced if each.partial is not None]))
    merged = Merged([row])
    for partial in [merge(partials[:2], Merged([row])), *partials[2:]] if len(partials) > 1 else partials:
        merged.add(partial)
    asked = Aggregation(row, 0, op, int(row.ddof))
    made = joined(parts, [each.reduction for each in reduced], merged, asked, states=row.adds)
    assert shown(made) == shown(backend().reduce_groups(ArraySource(array), shape, grouping, op, **options))
