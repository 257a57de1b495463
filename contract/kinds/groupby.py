"""Group-by: which columns are reduced in which groups of rows, and the table of groups that came out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, StrictBool, model_validator
from pydantic.config import JsonDict

from warpfold.contract.aggregations import AggregationSpec, KeyColumn, check_multiplies, check_on_gpu
from warpfold.contract.fields import MAX_ELEMENTS, JobOptions, ReduceBackendName
from warpfold.contract.group_tables import GROUPS_EXAMPLE, GroupTableResult
from warpfold.contract.groupings import LARGE_ON_GPU, StatesField
from warpfold.contract.inputs import FingerprintField
from warpfold.contract.kinds.reduce import MOST_OF_SMALL
from warpfold.contract.kinds.spec import Task, check_states_of_nulls, moved_from
from warpfold.contract.needs import DASK, GANG, GPU_FIRST
from warpfold.contract.op_parameters import DigitsField, check_digits, op_in_words
from warpfold.contract.partitions import PartitionsField, check_partitioned
from warpfold.contract.sources import Source, summary_of_source
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.wording import number_of
from warpfold.kernels.catalog import NOT_BY_KEY_ON_GPU
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.ops.operands import check_arity, check_states
from warpfold.kernels.parts.keyed import MOST_GROUPS
from warpfold.kernels.strategy import AUTO

MOST_KEYS = 16
MOST_AGGREGATIONS = 512
"""So many make a description of 64 columns."""


def _from_name(schema: JsonDict) -> None:
    """A name alone is short for an object with that column."""
    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}


class GroupbySpec(Task):
    """Reduce the rows of each group, which have equal keys, to one row of values: exactly, and with the same bits in
    any order of the rows.

    The columns are those of a table, `source`, or arrays of one length with a source each.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "groupby",
                    "source": {"type": "table", "path": "sales.parquet"},
                    "by": ["region"],
                    "aggregations": [
                        {"op": "sum", "column": "price"},
                        {"op": "mean", "column": "quantity", "name": "usual"},
                    ],
                },
                {
                    "kind": "groupby",
                    "by": [{"name": "region", "source": {"type": "values", "values": ["north", "south", "north"]}}],
                    "aggregations": [
                        {"op": "sum", "name": "total", "source": {"type": "values", "values": [1e16, 2.5, 2.0]}}
                    ],
                },
            ]
        }
    )

    kind: Literal["groupby"]
    source: Source | None = Field(
        None,
        description="The table whose columns are named: of type `table`, `dataset` or `files`. If it is left out, "
        "every column has a source of its own.",
    )
    by: tuple[KeyColumn, ...] = Field(
        (),
        max_length=MOST_KEYS,
        json_schema_extra=_from_name,
        description="The columns of keys. Rows whose keys are equal in all of these columns are one group. Keys are "
        "integers, truth values or strings, dictionaries of these, dates, timestamps, or floats, of which NaN is a "
        'null and −0 is 0. A string is short for {"column": …}. Without keys all rows are one group.',
    )
    aggregations: tuple[AggregationSpec, ...] = Field(
        min_length=1, max_length=MOST_AGGREGATIONS, description="The columns of the result, which are made in one pass."
    )
    dropna: StrictBool = Field(True, description="Whether rows with a null key are left out; otherwise null is a key.")
    sort: StrictBool = Field(
        True, description="Whether groups come in the order of their keys, nulls last; otherwise of their first rows."
    )
    min_count: int = Field(
        0, ge=0, le=MAX_ELEMENTS, strict=True,
        description="The least number of elements for a value: a group of fewer elements has a null. By default a "
        "value of no elements is the op's: 0 of sums, norms and counts, null of means and extremes.",
    )  # fmt: skip
    max_groups: int = Field(
        MOST_GROUPS, ge=1, le=1 << 30, strict=True, description="The job fails if there are more groups than this."
    )
    nan_policy: NanPolicy = Field(NanPolicy.PROPAGATE, description="What to do with NaN elements of float data.")
    backend: ReduceBackendName = Field(
        "auto",
        description="Backend of the slot. `auto` takes a GPU only for 16,777,216 and more rows whose integer keys and "
        f"columns are all made there. GPU slots compute every op but {NOT_BY_KEY_ON_GPU}. gang shares the rows among "
        "all GPUs of a machine. dask reduces partitions on the workers of a Dask cluster.",
    )
    states: StatesField = False
    fingerprint: FingerprintField = False
    partitions: PartitionsField = None
    digits: DigitsField = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self._check_sources()
        for index, asked in enumerate(self.aggregations):
            try:
                op = asked.row()
            except InvalidInput as error:
                raise InvalidInput(str(error), f"aggregations.{index}.{error.field}") from None
            if op.sources > 1:
                raise InvalidInput(f"{op.name} takes two columns, and groups reduce one", f"aggregations.{index}.op")
            try:
                check_arity(op, other=False, ddof=asked.ddof)
            except InvalidInput as error:
                raise InvalidInput(str(error), f"aggregations.{index}.{error.field}") from None
            if self.states:
                check_states(op, f"aggregations.{index}.op")
            dtype = None if asked.source is None else asked.source.known_dtype
            if dtype is not None:
                check_multiplies(asked.op, is_float=dtype.is_float, where=f"aggregations.{index}.op")
            check_partitioned(op, AUTO, self.partitions, of_dask=self.backend == DASK, field=f"aggregations.{index}.op")
        check_digits([asked.row() for asked in self.aggregations], self.digits, {"states": self.states})
        self._check_names()
        if not self.by and (self.states or self.backend not in ("auto", "cpu")):
            raise InvalidInput("needs a key, where the request asks for states or for another backend than cpu", "by")
        if self.states:
            check_states_of_nulls(self.sources())
        if self.backend in ("cuda", GANG):
            check_on_gpu(self.aggregations)
        return self

    def _check_sources(self) -> None:
        """All columns are of one table, or all have sources of their own, of one length."""
        first: tuple[str, int] | None = None
        for where, part in self._columns():
            if self.source is not None and (part.column is None or part.source is not None):
                raise InvalidInput(
                    "needs the name of a column of the table `source`, and nothing else", f"{where}.column"
                )
            if self.source is None and (part.source is None or part.column is not None):
                raise InvalidInput(
                    "needs a source of its own, unless the request has a `source`, a table whose column it names",
                    f"{where}.source",
                )
            count = None if part.source is None else part.source.known_count
            if count is not None:
                first = first or (where, count)
                if count != first[1]:
                    raise InvalidInput(
                        f"has {count:,} elements, and {first[0]} {first[1]:,}: a row needs one of each",
                        f"{where}.source",
                    )
        for index, key in enumerate(self.by):
            dtype = None if key.source is None else key.source.known_dtype
            if dtype is not None and dtype.is_float and dtype.name not in ("float32", "float64"):
                raise InvalidInput(f"holds {dtype.name}: of floats, float32 and float64 are keys", f"by.{index}.source")

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for where, part in self._columns():
            names = [part.label] if isinstance(part, KeyColumn) else [name for name, _ in part.columns()]
            for name in names:
                if name in seen:
                    raise InvalidInput(f"{name!r} is the name of {seen[name]}, too: give another name", f"{where}.name")
                seen[name] = where

    def _columns(self) -> Iterator[tuple[str, KeyColumn | AggregationSpec]]:
        yield from ((f"by.{index}", key) for index, key in enumerate(self.by))
        yield from ((f"aggregations.{index}", asked) for index, asked in enumerate(self.aggregations))

    def sources(self) -> Iterator[tuple[str, SourceSpec]]:
        if self.source is not None:
            yield "source", self.source
        for where, part in self._columns():
            if part.source is not None:
                yield f"{where}.source", part.source

    def needs(self) -> str:
        if self.backend != "auto":
            return self.backend
        return GPU_FIRST if self._suits_a_gpu() else "cpu"

    def _suits_a_gpu(self) -> bool:
        """Whether a GPU makes all rows itself and there are many, so that it may have the job without being asked."""
        sources = [source for _, source in self.sources()]
        if self.source is not None or len(self.by) != 1 or not self.sort or self.states:
            return False
        made = all(source.generator_seed is not None for source in sources)
        large = all((source.known_count or 0) >= LARGE_ON_GPU for source in sources)
        return made and large and all("cuda" in asked.backends() for asked in self.aggregations)

    def moved(self, backend: ReduceBackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for field in ("by", "aggregations"):
            parts[field] = [
                {
                    **part.model_dump(),
                    "source": None if part.source is None else part.source.shortened(max_n).model_dump(),
                }
                for part in getattr(self, field)
            ]
        return parts

    def small(self) -> bool:
        if self.states or self.backend in (GANG, DASK):
            return False
        counts = [source.known_count for _, source in self.sources()]
        return all(count is not None and count <= MOST_OF_SMALL for count in counts)

    def data_seed(self) -> int | None:
        return next((seed for _, source in self.sources() if (seed := source.generator_seed) is not None), None)

    def brief(self) -> "BriefGroupbySpec | None":
        if all(source.brief() is source for _, source in self.sources()):
            return None
        rest = self.model_dump(exclude={"source", "by", "aggregations", "webhook"})
        return BriefGroupbySpec(
            **rest,
            by=tuple(key.label for key in self.by),
            aggregations=tuple(
                f"{op_in_words(asked.model_dump(mode='json'))} of {asked.column or asked.label}"
                for asked in self.aggregations
            ),
            rows=next((count for _, source in self.sources() if (count := source.known_count) is not None), None),
        )

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        source, keys = stored.get("source"), _listed(stored.get("by", ()), _called)
        rows = stored.get("rows")
        return (
            _listed(stored.get("aggregations", ()), _of) + (f" by {keys}" if keys else ""),
            summary_of_source(source) if source else "" if rows is None else number_of("row", rows),
        )

    def description(self) -> str:
        """The request in the words of a report."""
        parts = [part for part in self.summary(self.model_dump(mode="json")) if part]
        nulls = "" if self.dropna else ", null is a key"
        return f"{' of '.join(parts)}{nulls}"


def _listed(parts: Any, wording: Any) -> str:
    return ", ".join(wording(part) for part in parts) if isinstance(parts, Sequence) else ""


def _of(stored: Any) -> str:
    match stored:
        case str():
            return stored
        case {"op": _, "column": str(column)}:
            return f"{op_in_words(stored)} of {column}"
        case {"op": _}:
            return f"{op_in_words(stored)} of {stored.get('name') or 'values'}"
    return ""


def _called(stored: Any) -> str:
    match stored:
        case str():
            return stored
        case {"column": str(column)}:
            return column
    return str(stored.get("name") or "key") if isinstance(stored, Mapping) else ""


class BriefGroupbySpec(JobOptions):
    """A `groupby` spec with many values, in brief."""

    kind: Literal["groupby"]
    by: tuple[str, ...] = Field(description="The names of the keys.")
    aggregations: tuple[str, ...] = Field(description="The ops and their columns, in words.")
    rows: int | None = Field(description="The number of rows; null where the spec does not have it.")
    dropna: bool
    sort: bool
    min_count: int
    max_groups: int
    nan_policy: NanPolicy
    backend: ReduceBackendName
    states: StatesField = False
    fingerprint: FingerprintField = False
    partitions: PartitionsField = None
    digits: DigitsField = None


class GroupbyResult(GroupTableResult):
    """A table with a row for each group, how it was computed, and where. The columns' values stand in the order of the
    groups."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**GROUPS_EXAMPLE, "dropped": 0}]})

    dropped: int = Field(description="How many rows were left out because a key is null.")
