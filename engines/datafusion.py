"""Exact aggregates of DataFusion: `warpfold.datafusion.register(context)` adds them to a session.

| SQL | value |
|---|---|
| `warpfold_sum(x)`, `warpfold_mean(x)` | the correctly rounded sum and mean of a group |
| `warpfold_state(x)` | the bytes of the exact state of a group |
| `warpfold_merge(state)` | the bytes of the merged states of a group |
| `warpfold_state_sum(state)`, `warpfold_state_mean(state)` | the value of a state |
| `warpfold_list_sum(array_agg(x))`, `…_mean`, `…_state` | the same of lists: fast where groups are many |

Elements are float64: DataFusion converts other numbers first, and integers beyond 2**53 are rounded by that.
"""

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import datafusion
import numpy as np
import pyarrow
from datafusion import SessionContext

from warpfold.engines import numbered
from warpfold.kernels.cpu.accumulator import Accumulator, accumulator
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ExactState, mean, total
from warpfold.kernels.keyed import Cells
from warpfold.kernels.ops import Terms

_STATE = pyarrow.large_binary()
_ANY_STATE = pyarrow.binary_view()
"""What DataFusion converts every kind of bytes to."""

_VALUE = pyarrow.float64()
_FLOAT64 = DTYPES["float64"]
_MOST_WAITING = 1 << 15


def register(context: SessionContext) -> SessionContext:
    """Add the functions to `context`, which is returned."""
    finishes: dict[str, tuple[Any, Callable[[ExactState], Any]]] = {
        "sum": (_VALUE, _sum),
        "mean": (_VALUE, _mean),
        "state": (_STATE, ExactState.to_bytes),
    }
    for name, (result, finish) in finishes.items():
        make = partial(_Adding, finish, result)
        context.register_udaf(datafusion.udaf(make, [_VALUE], result, [_STATE], "immutable", f"warpfold_{name}"))
        lists = datafusion.udf(
            partial(_of_lists, name), [pyarrow.list_(_VALUE)], result, "immutable", f"warpfold_list_{name}"
        )
        context.register_udf(lists)
    merging = partial(_Merging, ExactState.to_bytes, _STATE)
    context.register_udaf(datafusion.udaf(merging, [_ANY_STATE], _STATE, [_STATE], "immutable", "warpfold_merge"))
    for name in ("sum", "mean"):
        values = partial(_of_states, mean=name == "mean")
        context.register_udf(datafusion.udf(values, [_ANY_STATE], _VALUE, "immutable", f"warpfold_state_{name}"))
    return context


def _sum(state: ExactState) -> float | None:
    """SQL's sum of nothing is null."""
    return total(state, _FLOAT64) if state.count else None


def _mean(state: ExactState) -> float | None:
    return mean(state, _FLOAT64) if state.count else None


class _Adding(datafusion.Accumulator):
    """The exact sum of one group. What DataFusion hands on between its threads is the bytes of the state.

    The first elements wait in an array: an accumulator has some 100 KB, and groups may be many and small.
    """

    def __init__(self, finish: Callable[[ExactState], Any], result: Any) -> None:
        self._finish = finish
        self._result = result
        self._waiting = array("d")
        self._adding: Accumulator | None = None
        self._merged = ExactState.empty(Terms.VALUES)

    def update(self, *values: Any) -> None:
        """Add the elements of an array; nulls are left out."""
        present = values[0].drop_null() if values[0].null_count else values[0]
        elements = present.to_numpy(zero_copy_only=False)
        if self._adding is not None:
            self._adding.add(elements)
            return
        self._waiting.frombytes(elements.tobytes())
        if len(self._waiting) >= _MOST_WAITING:
            self._adding = accumulator(_FLOAT64, Terms.VALUES)
            self._adding.add(np.frombuffer(self._waiting))
            self._waiting = array("d")

    def merge(self, states: list[Any]) -> None:
        """Take in the states of other threads."""
        for state in states[0].drop_null():
            self._merge(ExactState.from_bytes(state.as_py()))

    def _merge(self, state: ExactState) -> None:
        """A state of no terms merges with states of products, too: it is what a group begins with."""
        if self._merged.count and state.count:
            self._merged = self._merged.merge(state)
        elif state.count:
            self._merged = state

    def state(self) -> list[Any]:
        """The bytes of the exact state."""
        return [pyarrow.scalar(self._whole().to_bytes(), _STATE)]

    def evaluate(self) -> Any:
        """The value."""
        return pyarrow.scalar(self._finish(self._whole()), self._result)

    def _whole(self) -> ExactState:
        if self._waiting:
            self._merge(numbered.state_of(Cells(np.frombuffer(self._waiting))))
            self._waiting = array("d")
        return self._merged if self._adding is None else self._merged.merge(self._adding.state())


class _Merging(_Adding):
    """The merged states of one group."""

    def update(self, *values: Any) -> None:
        """Take in an array of states; nulls are left out."""
        self._merge(numbered.merge_all(values[0]))


def _of_lists(name: str, lists: Any) -> Any:
    """The values or states of an array of lists; null for lists that are null or hold no elements."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    cells = numbered.cells_of(lists.values)
    made = numbered.reduce_lists(cells, offsets, "sum" if name == "state" else name, states=name == "state")
    if name == "state":
        return made.states[0].array()
    return pyarrow.array(made.values, _VALUE, mask=made.counts == 0)


def _of_states(states: Any, *, mean: bool) -> Any:
    values, missing = numbered.values_of_states(states, mean=mean)
    return pyarrow.array(values, _VALUE, mask=missing)
