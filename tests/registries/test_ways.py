"""Every op whose parts combine has the values and the states of the definition on every layout: by one call, in parts
that travel and are merged in any order, and by several devices."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import pairwise, product
from typing import Any, cast

import numpy as np
import pytest

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits, reference_bytes
from warpfold.kernels.aggregates.by_name import combines
from warpfold.kernels.backend import GroupedReduction, Progress
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms, Value, reference, terms_of
from warpfold.kernels.parts import array_parts, shares
from warpfold.kernels.parts.array_partitions import joined, reduce_part
from warpfold.kernels.parts.array_parts import cut_array
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn, GroupPlan, KeyedSource
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.over_devices import reduce_spread
from warpfold.kernels.parts.partial import PartialTable
from warpfold.kernels.parts.partitions import merged_value, reduce_partition
from warpfold.kernels.parts.row_partitions import merged_rows, reduce_rows, table_of
from warpfold.kernels.parts.shares import group_shares
from warpfold.kernels.query import Answer, ByKey, Query, Shaped, Whole
from warpfold.kernels.source import ArraySource

SHAPE = (6, 8)
COUNT = 48
CUTS = [0, 5, 5, 31, COUNT]
SEGMENTS = (0, 0, 7, 7, 30, COUNT)
KEYS = np.array([7] + [4 - number % 5 for number in range(COUNT - 1)], np.int32)

Group = Sequence[int]
"""The places of the elements of a group among all."""

PLACES = np.arange(COUNT).reshape(SHAPE)
GROUPS: dict[str, tuple[Grouping, Sequence[Group]]] = {
    "rows": (AlongAxes((1,)), PLACES.tolist()),
    "columns": (AlongAxes((0,)), PLACES.T.tolist()),
    "segments": (Segments(SEGMENTS), [range(*pair) for pair in pairwise(SEGMENTS)]),
}
OF_KEYS = [np.flatnonzero(key == KEYS).tolist() for key in sorted(set(KEYS.tolist()))]
IN_ORDER: Sequence[Group] = sorted(OF_KEYS)
"""The groups in the order of their first rows."""


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


class Both(CpuBackend):
    """Two devices that share what they are asked for."""

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        answer: Any
        match query:
            case Shaped():
                answer = reduce_spread([backend(), backend()], query, 7, progress)
            case ByKey():
                answer = group_shares([backend(), backend()], query.source, query.plan, progress)
        return cast(Answer, answer)


def sent(part: PartialTable | None) -> PartialTable:
    """What another process gets."""
    received: PartialTable = pickle.loads(pickle.dumps(part))  # noqa: S301 - our own bytes
    return received


def merged_in_any_order(merged: Merged, parts: Sequence[PartialTable | None], chance: random.Random) -> Merged:
    for part in chance.sample(parts, len(parts)):
        merged.add(sent(part))
    return merged


def whole(op: Op, array: Any, policy: NanPolicy, chance: random.Random) -> list[Value]:
    """The value of all elements by each way."""
    called = backend().answer(Whole(source=ArraySource(array), op=op, nan_policy=policy)).value
    parts = []
    for number, (start, stop) in enumerate(pairwise(CUTS)):

        def begin(start: int = start, stop: int = stop) -> tuple[ArraySource, None]:
            return ArraySource(array[start:stop]), None

        parts.append(reduce_partition(backend(), begin, op, number, nan_policy=policy).partial)
    merged = merged_in_any_order(Merged([op]), parts, chance)
    return [called, merged_value(merged, op, 0, CUTS)[0]]


def shaped(op: Op, array: Any, policy: NanPolicy, grouping: Grouping, chance: random.Random) -> list[GroupedReduction]:
    """The values of groups by each way."""
    query = Shaped(source=ArraySource(array), op=op, nan_policy=policy, shape=SHAPE, grouping=grouping, states=op.adds)
    cut = list(cut_array(SHAPE, grouping, 5, array.itemsize, in_memory=True))
    reduced = [
        reduce_part(
            backend(),
            replace(query, source=part.taken(query.source), shape=part.shape, grouping=part.grouping),
            part,
        )
        for part in cut
    ]
    merged = merged_in_any_order(Merged([op]), [each.partial for each in reduced if each.partial is not None], chance)
    asked = Aggregation(op, 0, op.name)
    together = joined(cut, [each.reduction for each in reduced], merged, asked, states=op.adds)
    return [backend().answer(query), together, Both(8 << 20).answer(query)]


def rows(array: Any, start: int = 0, stop: int = COUNT) -> KeyedSource:
    keys, elements = ArraySource(KEYS[start:stop]), ArraySource(array[start:stop])
    source: KeyedSource = keyed_arrays([("k", keys, "by.0")], [("x", elements, "x")])
    return source


def by_key(op: Op, array: Any, policy: NanPolicy, chance: random.Random, *, sort: bool) -> list[GroupColumn]:
    """The values of the groups of keys by each way."""
    plan = GroupPlan((Aggregation(op, 0, op.name),), nan_policy=policy, states=op.adds, sort=sort)
    parts = [
        reduce_rows(backend(), rows(array, start, stop), plan, number)[1]
        for number, (start, stop) in enumerate(pairwise(CUTS))
    ]
    merged = merged_in_any_order(merged_rows(plan), parts, chance)
    tables = [
        backend().answer(ByKey(rows(array), plan)),
        table_of(merged, plan, CUTS),
        Both(8 << 20).answer(ByKey(rows(array), plan)),
    ]
    return [table.columns[0] for table in tables]


def total_bytes(total: str, elements: Sequence[reference.Element], dtype: DType) -> bytes:
    """The state of a total of one source, such as "|xxx|". One of three factors or more does not tell −0 from 0."""
    factors = len(total.strip("|"))
    powers = [reduce(reference.product, [element] * factors) for element in elements]
    summed = reference.total([reference.magnitude(each) for each in powers] if "|" in total else powers, dtype)
    whole = replace(summed, all_negative_zero=False) if factors > 2 else summed
    return reference.state_bytes(whole, [Terms.VALUES, Terms.PRODUCTS, Terms.TRIPLES, Terms.QUADRUPLES][factors - 1])


@dataclass(frozen=True)
class Asked:
    """An op of elements with these patterns, and what the definition gives."""

    op: Op
    dtype: DType
    policy: NanPolicy
    bits: Sequence[int]

    def answer(self, group: Group) -> tuple[Value | None, int]:
        """The value and the count of a group."""
        answer = reference.reduce(self.op, self.dtype, [self.bits[at] for at in group], self.policy)
        return (answer.value, answer.count) if isinstance(answer, reference.Answer) else (None, 0)

    def by_row(self, group: Group) -> tuple[Value | None, int]:
        """The same, where the place of an element is its number among all rows."""
        value, count = self.answer(group)
        return (value if value is None or not self.op.places else group[int(value)]), count

    def states(self, group: Group) -> list[bytes]:
        """The states of a group, of an op that adds."""
        omit, patterns = self.policy is NanPolicy.OMIT, [self.bits[at] for at in group]
        kept = [each for each in patterns if not (omit and reference.element(each, self.dtype).nan)]
        if self.op.terms is Terms.TOTALS:
            elements = [reference.element(pattern, self.dtype) for pattern in kept]
            return [total_bytes(total, elements, self.dtype) for total in self.op.totals]
        magnitudes = self.op.magnitudes
        return [reference_bytes(kept, self.dtype, terms, magnitudes=magnitudes) for terms in terms_of(self.op)]

    def check(
        self, made: GroupedReduction | GroupColumn, groups: Sequence[Group], answers: Sequence[tuple[Value | None, int]]
    ) -> None:
        counts = made.counted() if isinstance(made, GroupedReduction) else made.counts.tolist()
        for value, count, (right, number) in zip(made.listed(), counts, answers, strict=True):
            assert count == number, self
            assert right is value if value is None or right is None else same(value, right), (self, value, right)
        if self.op.adds:
            states = zip(*([states[at] for at in range(len(states))] for states in made.states), strict=True)
            assert list(map(list, states)) == list(map(self.states, groups)), self


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=list(DTYPES))
def test_every_way_has_the_values_and_the_states_of_the_definition(
    dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_parts, "_STATE_BYTES", 0)  # so that parts share values
    monkeypatch.setattr(shares, "PART_ROWS", 10)
    chance = random.Random(dtype.name)
    policies = (NanPolicy.PROPAGATE, NanPolicy.OMIT) if dtype.is_float else (NanPolicy.PROPAGATE,)
    ops = [op for op in OPS.values() if op.sources == 1 and combines(op)]
    some = chance.sample([op for op in ops if op.terms is Terms.TOTALS], 8 if dtype.name == "float64" else 2)
    for policy, op in product(policies, [op for op in ops if op.terms is not Terms.TOTALS or op in some]):
        asked = Asked(op, dtype, policy, any_bits(dtype, COUNT, chance))
        array = array_of_bits(asked.bits, dtype)
        right, _ = asked.answer(range(COUNT))
        for value in whole(op, array, policy, chance):
            assert right is not None
            assert same(value, right), (asked, value, right)
        for grouping, groups in GROUPS.values():
            for made in shaped(op, array, policy, grouping, chance):
                asked.check(made, groups, list(map(asked.answer, groups)))
        sort = chance.random() < 0.5
        in_turn = OF_KEYS if sort else IN_ORDER
        for column in by_key(op, array, policy, chance, sort=sort):
            asked.check(column, in_turn, list(map(asked.by_row, in_turn)))
