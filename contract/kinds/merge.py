"""Merging of tables of exact states, group by group: which tables, and the values that came out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool

from warpfold.contract.fields import MAX_ELEMENTS, BackendName
from warpfold.contract.group_tables import GROUPS_EXAMPLE, GroupTableResult
from warpfold.contract.kinds.spec import Task, moved_from
from warpfold.contract.sources.artefact import ArtefactSource
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.sources.table import TableSource
from warpfold.contract.wording import number_of
from warpfold.kernels.parts.keyed import MOST_GROUPS

MOST_TABLES = 1000

StatesSource = Annotated[ArtefactSource | DatasetSource | TableSource, Field(discriminator="type")]
TablesField = Annotated[
    tuple[StatesSource, ...],
    Field(
        min_length=1,
        max_length=MOST_TABLES,
        description="The tables of states, of the same keys, ops and dtypes: the stored result of a job (`artefact`), "
        "an uploaded Arrow or Parquet file (`dataset`), or such a file on the server (`table`).",
    ),
]
SortField = Annotated[
    StrictBool,
    Field(
        description="Whether groups come in the order of their keys, nulls last; otherwise they come in the order of "
        "the tables. The values of an array come in C order in any case."
    ),
]
MinCountField = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_ELEMENTS,
        strict=True,
        description="The least number of elements for a value: a group of fewer elements has a null.",
    ),
]
MaxGroupsField = Annotated[
    int, Field(ge=1, le=1 << 30, strict=True, description="The job fails if there are more groups than this.")
]


class MergeSpec(Task):
    """Merge tables of exact states: the states of equal keys are added, and each sum is rounded once. The values have
    the bits of one reduction of all the elements that the tables were made of.

    Jobs with `states` store such tables. Groups that only some of the tables have are kept.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "merge",
                    "tables": [
                        {"type": "artefact", "job_id": "bad2cde1-a387-4c34-b05b-cb4651e4f880"},
                        {"type": "table", "path": "january.parquet"},
                    ],
                }
            ]
        }
    )

    kind: Literal["merge"]
    tables: TablesField
    sort: SortField = True
    min_count: MinCountField = 0
    max_groups: MaxGroupsField = MOST_GROUPS
    states: StrictBool = Field(
        False, description="Whether the merged states are stored, so that more can be added to them later."
    )
    backend: Literal["auto", "cpu"] = Field("auto", description="CPU slots alone merge states.")

    def sources(self) -> Iterator[tuple[str, SourceSpec]]:
        for index, table in enumerate(self.tables):
            yield f"tables.{index}", table

    def needs(self) -> str:
        return "cpu"

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return moved_from("cpu", backend)

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        tables = stored.get("tables")
        if not isinstance(tables, Sequence) or not tables:
            return ("merged states",)
        return ("merged states", number_of("table", len(tables)))


class MergeResult(GroupTableResult):
    """The values of all tables of states together: a row for each group or, with `shape`, for each value of an
    array."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**GROUPS_EXAMPLE, "shape": None, "tables": 2, "strategy": "exact"}]}
    )

    tables: int = Field(description="How many tables were merged.")
    shape: tuple[int, ...] | None = Field(
        description="The shape of the array that the values make in C order; then the keys are the array's indices, "
        "and the sizes are the numbers of elements. It is null for groups."
    )
