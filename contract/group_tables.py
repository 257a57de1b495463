"""A table with a row for each group, which jobs of the kinds `groupby` and `merge` give."""

from typing import Literal

from pydantic import Field
from pydantic.config import JsonDict

from warpfold.contract.artefact import Artefact
from warpfold.contract.exact_forms import FractionsField
from warpfold.contract.frozen import Frozen
from warpfold.contract.groupings import MOST_RESULTS
from warpfold.contract.inputs import InputView
from warpfold.contract.json_value import JsonValue, KeyValue
from warpfold.contract.partitions import SpreadField
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.reduction_examples import REDUCE_EXAMPLE
from warpfold.contract.timings import Timings


class GroupKeys(Frozen):
    """A column of keys: one for each group."""

    name: str
    dtype: str = Field(description="The keys' type, as Arrow calls it.")
    values: tuple[KeyValue, ...] | None = Field(
        description="The keys: dates and timestamps in ISO 8601, those with a time zone in UTC. It is null if there "
        f"are more than {MOST_RESULTS:,} groups, whose keys are in the `artefact`."
    )


class GroupValues(Frozen):
    """A column of values: one for each group."""

    name: str
    op: str
    column: str | None = Field(description="The column that was reduced; null if it had a source of its own.")
    dtype: str = Field(description='The dtype of the values; "integer" is an integer of any size.')
    values: tuple[JsonValue | None, ...] | None = Field(
        description="The values, among which a null stands where a group has no value. If there are more than "
        f"{MOST_RESULTS:,} groups, the field is null, and the `artefact` has the values."
    )
    hex: tuple[str | None, ...] | None = Field(
        description="The values as Python's float.hex prints them; null for integers and bools, and where `values` is "
        "null."
    )
    counts: tuple[int, ...] | None = Field(
        description="The number of elements that each value was computed from; null where `values` is null."
    )
    nans: tuple[int, ...] | None = Field(
        None,
        exclude_if=lambda nans: nans is None,
        description="The number of NaNs that were left out of each value, where a CPU slot omitted them.",
    )
    words: tuple[str | None, ...] | None = Field(
        None,
        exclude_if=lambda words: words is None,
        description="The values in words: decimals with all their digits, where `values` has the nearest float64; or "
        "instants and durations in ISO 8601, where `values` has the integers.",
    )
    fractions: FractionsField = None


_OF_EVERY = ("correctly_rounded", "backend", "device", "timings", "provenance")
GROUPS_EXAMPLE: JsonDict = {
    "groups": 2,
    "keys": [{"name": "region", "dtype": "string", "values": ["north", "south"]}],
    "columns": [
        {
            "name": "total",
            "op": "sum",
            "column": None,
            "dtype": "float64",
            "values": [10000000000000002.0, 2.5],
            "hex": ["0x1.1c37937e08001p+53", "0x1.4000000000000p+1"],
            "counts": [2, 1],
        }
    ],
    "sizes": [2, 1],
    "rows": 3,
    "strategy": "exact",
    **{name: REDUCE_EXAMPLE[name] for name in _OF_EVERY},
}


class GroupTableResult(Frozen):
    """A table with a row for each group, how it was computed, and where."""

    groups: int = Field(description="How many groups there are.")
    keys: tuple[GroupKeys, ...]
    columns: tuple[GroupValues, ...]
    sizes: tuple[int, ...] | None = Field(
        description=f"The number of rows of each group; null if there are more than {MOST_RESULTS:,} groups."
    )
    rows: int = Field(description="How many rows all groups have together.")
    artefact: Artefact | None = Field(
        None,
        exclude_if=lambda artefact: artefact is None,
        description=f"The stored table of keys and values, if it has more than {MOST_RESULTS:,} groups or the request "
        "asked for `states`. With `states`, the table also has a column of exact states for each column of values.",
    )
    input: InputView | None = Field(
        None, description="The files, datasets and URLs that were read; null if none was read."
    )
    strategy: str
    kernel: str | None = Field(
        None,
        exclude_if=lambda kernel: kernel is None,
        description="The method by which a GPU added the groups: `shared_memory` (with the copies of each group) for "
        "few groups, `buckets` for many, `runs` or `stream` for sorted keys, or `sorted`.",
    )
    correctly_rounded: bool = Field(description="Whether every value is the true one, rounded once.")
    backend: Literal["cpu", "cuda", "dask"]
    device: DeviceView
    timings: Timings
    provenance: Provenance
    partitions: SpreadField = None
