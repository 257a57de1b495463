"""Ops of several totals by key: a backend reduces the totals, as columns of their own, and the values are made of their
exact states. Products of three and four elements are columns of float64 (`kernels.exact.expansion`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.certain import ColumnStates
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.keyed.reducing import described_states
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.expansion import Expansion, Scales
from warpfold.kernels.lowering.total_states import in_classes
from warpfold.kernels.ops import PLAIN_TOTALS, Terms, op_named
from warpfold.kernels.parts.keyed import (
    Aggregation,
    Cells,
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedRows,
    KeyedSource,
    column_of,
    column_of_counts,
    needed_count,
)
from warpfold.kernels.query import ByKey

Run = Callable[[Any, Progress | None], GroupTable]

Total = tuple[int, str]
"""A column and one of its totals."""


def group_by_totals(query: ByKey, run: Run, progress: Progress | None) -> GroupTable:
    """The answer to a query of which some ops may be made of several totals, which `run` gives. Raises as `run`."""
    plan = query.plan
    if all(asked.op.terms is not Terms.TOTALS for asked in plan.aggregations):
        return run(query, progress)
    wanted = [
        (asked.column, total)
        for asked in plan.aggregations
        if asked.op.terms is Terms.TOTALS
        for total in asked.op.totals
    ]
    return _Totals(query.source, plan, list(dict.fromkeys(wanted)), run, progress).table()


@dataclass
class _Totals:
    """The totals that the ops of a plan are made of, each once."""

    source: KeyedSource
    plan: GroupPlan
    wanted: Sequence[Total]
    run: Run
    progress: Progress | None
    expansions: dict[Total, Expansion] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, total in self.wanted:
            if total not in PLAIN_TOTALS:
                self.expansions[column, total] = Expansion(total, {"x": self.source.dtypes[column]})

    def table(self) -> GroupTable:
        """The groups with all values."""
        others = [asked for asked in self.plan.aggregations if asked.op.terms is not Terms.TOTALS]
        plain = [
            Aggregation(op_named(PLAIN_TOTALS[total]), column, f"{total} of {column}", state_only=True)
            for column, total in self.wanted
            if total in PLAIN_TOTALS
        ]
        base: dict[Total, Scales] = {total: expansion.base for total, expansion in self.expansions.items()}
        table, sums = self._reduced([*others, *plain], base)
        counts, states = dict[Total, Any](), dict[Total, Sequence[ExactState]]()
        for asked, column in zip(plain, table.columns[len(others) :], strict=False):
            key = asked.column, asked.name.partition(" ")[0]
            counts[key], states[key] = column.counts, ColumnStates(column.states[0])
        for key, expansion in self.expansions.items():
            counts[key] = sums[key][0].counts
            states[key] = in_classes(expansion, counts[key].tolist(), partial(self._of_class, key, sums[key]))
        done = iter(table.columns)
        columns = [
            self._column(asked, counts, states)
            if asked.op.terms is Terms.TOTALS
            else replace(column := next(done), states=column.states if self.plan.states else ())
            for asked in self.plan.aggregations
        ]
        described = described_states(self.source, self.plan, table.dropped) if self.plan.states else None
        return replace(table, columns=tuple(columns), described=described)

    def _of_class(self, key: Total, base: Sequence[GroupColumn], scales: Scales) -> Sequence[ExactState]:
        """The sums of the products of a class; rows are read once more for any but the first."""
        expansion = self.expansions[key]
        columns = base if scales == expansion.base else self._reduced([], {key: scales})[1][key]
        if len(columns) == 1:
            return ColumnStates(columns[0].states[0])
        groups = len(columns[0].states[0])
        merged, ids = MergedStates(Terms.VALUES), np.arange(groups)
        for column in columns:
            merged.add(column.states[0], ids, groups)
        return ColumnStates(merged.encoded(groups))

    def _reduced(
        self, asked: Sequence[Aggregation], classes: Mapping[Total, Scales]
    ) -> tuple[GroupTable, dict[Total, Sequence[GroupColumn]]]:
        """The table of what is asked for, and the columns of the sums of products of some classes."""
        source, first = self.source, len(self.source.dtypes)
        made = list(asked)
        for key in classes:
            for _ in range(self.expansions[key].width):
                column, name = first + len(made) - len(asked), f"{key[1]} {len(made)}"
                made.append(Aggregation(op_named("sum"), column, name, state_only=True))
        beside = len(made) - len(asked)
        if beside:
            names = [source.column_names[key[0]] for key in classes for _ in range(self.expansions[key].width)]
            source = replace(
                source,
                column_names=(*source.column_names, *names),
                dtypes=(*source.dtypes, *[DTYPES["float64"]] * beside),
                begin=lambda: self._begun(classes),
                whole=None,
            )
        table = self.run(ByKey(source, replace(self.plan, aggregations=tuple(made), states=True)), self.progress)
        sums, at = dict[Total, Sequence[GroupColumn]](), len(asked)
        for key in classes:
            sums[key] = table.columns[at : at + self.expansions[key].width]
            at += self.expansions[key].width
        return table, sums

    def _begun(self, classes: Mapping[Total, Scales]) -> Iterator[KeyedPart]:
        for part in self.source.begin():
            yield KeyedPart(part.start, part.stop, partial(self._with_products, part, classes))

    def _with_products(self, part: KeyedPart, classes: Mapping[Total, Scales]) -> KeyedRows:
        rows = part.read()
        products = []
        for (column, total), scales in classes.items():
            cells = rows.columns[column]
            made = self.expansions[column, total].of([cells.elements], scales)
            products += [Cells(np.ascontiguousarray(each), cells.missing) for each in made]
        return replace(rows, columns=(*rows.columns, *products))

    def _column(
        self, asked: Aggregation, counts: Mapping[Total, Any], states: Mapping[Total, Sequence[ExactState]]
    ) -> GroupColumn:
        """The values of an op of several totals."""
        keys, dtype = [(asked.column, total) for total in asked.op.totals], self.source.dtypes[asked.column]
        own, terms = counts[keys[0]], [states[key] for key in keys]
        finish = ValueFinish(asked.op, asked.op.result_dtype(dtype), asked.ddof)
        if asked.state_only:
            made = column_of_counts(asked, dtype, own)
        else:
            needed = max(needed_count(asked, self.plan.min_count), 1)
            values = np.where(own >= needed, finish.values_of_totals(terms, np.where(own >= needed, own, 0)), np.nan)
            made = column_of(asked, dtype, values, own, self.plan.min_count)
        if not self.plan.states:
            return made
        kept = (StateColumn.of_bytes([state.to_bytes() for state in each]) for each in terms)
        return replace(made, states=tuple(kept))
