"""Group-by of data frames: a frame is uploaded, reduced by its keys, and comes back as a frame of the same library."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from warpfold.client import artefacts, jobs, sources
from warpfold.client.exchange import Steps
from warpfold.client.group_table import GroupTable, polars_of
from warpfold.client.groups import parameters_in
from warpfold.client.models import Job
from warpfold.client.sources import ManyFiles
from warpfold.client.table_options import OF_TABLES, TableOptions
from warpfold.kernels.machine.extras import install
from warpfold.kernels.ops import OPS

if TYPE_CHECKING:
    from warpfold.contract.fields import Priority, ReduceBackendName

T = TypeVar("T")

Ops = str | Sequence[str]


class GroupByOptions(TableOptions, total=False):
    """The options of a group-by besides its keys. The service's defaults hold for options that are left out
    (docs/groups.md). Those of tables are for a file that is given as a Path or a URL."""

    dropna: bool
    sort: bool
    min_count: int
    max_groups: int
    nan_policy: str
    backend: "ReduceBackendName"
    partitions: int
    states: bool
    fingerprint: bool
    timeout_s: float
    priority: "Priority"
    tags: Mapping[str, str]


class GroupBy:
    """The groups of the rows of a frame. Each method hands in one job and waits for it, and gives a frame with the keys
    and the values as columns: of pandas or Polars, whichever came in, and of pyarrow otherwise. Raises JobFailed,
    KeyError for a column that is not there, and ImportError without pyarrow."""

    def __init__(self, do: Callable[[Steps[Any]], Any], data: object, by: Ops, options: GroupByOptions) -> None:
        self._do = do
        self._data = ManyFiles.among(data) or data
        self._by = [by] if isinstance(by, str) else list(by)
        self._options = options

    def agg(
        self,
        columns: Mapping[str, Ops] | None = None,
        /,
        *,
        ddof: int = 0,
        q: float | Sequence[float] | None = None,
        method: str | None = None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        **named: tuple[str, str],
    ) -> Any:
        """Several ops of several columns in one pass: `agg({"price": ["sum", "max"]})`, whose columns are called
        price_sum and price_max, or `agg(total=("price", "sum"))`. `ddof` is for var, skew and others, `q` and `method`
        are for quantile: several q make a column each, price_quantile_0.5. The `parameters` of other ops are {"k": 3}
        and the like: so many elements make a column each, price_top_k_0."""
        asked = [(column, op, f"{column}_{op}") for column, ops in (columns or {}).items() for op in _listed(ops)]
        asked += [(column, op, name) for name, (column, op) in named.items()]
        return self._made(asked, {"ddof": ddof, "q": q, "method": method, **parameters})

    def sum(self, *columns: str) -> Any:
        """The correctly rounded sums of these columns, or of all but the keys, called as the columns are."""
        return self._made_of("sum", columns)

    def mean(self, *columns: str) -> Any:
        """The correctly rounded means; see `sum`."""
        return self._made_of("mean", columns)

    def min(self, *columns: str) -> Any:
        """The smallest elements; see `sum`."""
        return self._made_of("min", columns)

    def max(self, *columns: str) -> Any:
        """The largest elements; see `sum`."""
        return self._made_of("max", columns)

    def median(self, *columns: str) -> Any:
        """The middle elements, or the means of the two in the middle, rounded once; see `sum`."""
        return self._made_of("median", columns)

    def first(self, *columns: str) -> Any:
        """The first elements that are no nulls; see `sum`."""
        return self._made_of("first", columns)

    def last(self, *columns: str) -> Any:
        """The last elements that are no nulls; see `sum`."""
        return self._made_of("last", columns)

    def nunique(self, *columns: str) -> Any:
        """How many different elements there are; see `sum`."""
        return self._made_of("nunique", columns)

    def quantile(self, *columns: str, q: float | Sequence[float] = 0.5, method: str | None = None) -> Any:
        """The quantiles, rounded once; of several q each has a column, such as price_0.9. See `sum`."""
        return self._made_of("quantile", columns, q=q, method=method)

    def var(self, *columns: str, ddof: int = 0) -> Any:
        """The correctly rounded variances; see `sum`."""
        return self._made_of("var", columns, ddof=ddof)

    def std(self, *columns: str, ddof: int = 0) -> Any:
        """The correctly rounded standard deviations; see `sum`."""
        return self._made_of("std", columns, ddof=ddof)

    def _made_of(self, op: str, columns: Sequence[str], **parameters: Any) -> Any:
        chosen = columns or [name for name in names_of(self._data) if name not in self._by]
        return self._made([(column, op, column) for column in chosen], parameters)

    def _made(self, asked: Sequence[tuple[str, str, str]], parameters: Mapping[str, Any]) -> Any:
        if not asked:
            raise ValueError("name a column to reduce")
        aggregations = [
            {"column": column, "op": op, "name": name, **parameters_of(op, parameters)} for column, op, name in asked
        ]
        return self._do(_reduced(self._data, self._by, aggregations, self._options))


def parameters_of(op: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that an aggregation by `op` takes, without those that are left out."""
    row, chosen = OPS.get(op), {name: value for name, value in parameters.items() if value is not None}
    if row is None:  # the service refuses it by name
        return {}
    taken = {name: value for name, value in chosen.items() if name in row.takes}
    taken = parameters_in(taken)
    return {**taken, "ddof": chosen["ddof"]} if row.ddof and chosen.get("ddof") else taken


def groups_of_job(job: Job) -> Steps[Any]:
    """All groups of a group-by, once it has ended. Raises JobFailed, and TypeError for another kind."""
    result = jobs.result_of((yield from jobs.wait(job)))
    if not isinstance(result, GroupTable):
        raise TypeError(f"job {job.id} is of kind {job.kind}, and makes no groups")
    return (yield from artefacts.groups_of(result))


def _listed(ops: Ops) -> Sequence[str]:
    return [ops] if isinstance(ops, str) else ops


def names_of(data: object) -> list[str]:
    """The names of a frame's columns. Raises TypeError for a file, which is not read here."""
    if sources.is_file(data):
        raise TypeError("name the columns to reduce: a file is read by the service")
    return [str(name) for name in table_of(data).column_names]


def table_of(data: object, columns: Sequence[str] | None = None) -> Any:
    """`data` as a table of pyarrow, or only these of its columns. Raises TypeError if `data` is no table, KeyError for
    a column that is not there, and ImportError without pyarrow."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"groups of frames need pyarrow: {install('frames')}") from error
    named: Any = data
    if columns is not None and library_of(data) == "pandas":
        _check_names(columns, list(named.columns))
        named = named[list(dict.fromkeys(columns))]  # other columns may hold values that Arrow does not
    try:
        if library_of(data) == "pandas":
            table = pyarrow.Table.from_pandas(named, preserve_index=False)
        elif isinstance(data, Mapping):
            table = pyarrow.table({name: _column_of(values) for name, values in data.items()})
        else:
            table = pyarrow.table(data)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"this {type(data).__name__} is not a table of columns: {error}") from None
    _check_names(columns or (), table.column_names)
    chosen = table if columns is None else table.select(list(dict.fromkeys(columns)))
    return chosen.replace_schema_metadata(None)


def _column_of(values: Any) -> Any:
    """A column of pyarrow, which is one of uint64 or of decimals where int64 does not hold the integers of a list."""
    import pyarrow

    if isinstance(values, list | tuple) and set(map(type, values)) <= {int, type(None)}:
        for kind in (pyarrow.int64(), pyarrow.uint64(), pyarrow.decimal128(38), pyarrow.decimal256(76)):
            with suppress(OverflowError, pyarrow.ArrowInvalid):
                return pyarrow.array(values, kind if any(value is not None for value in values) else None)
    return values


def _check_names(columns: Sequence[str], names: Sequence[object]) -> None:
    """Raise KeyError for a column that is not there; its message names the columns that are most like it."""
    missing = next((name for name in columns if name not in names), None)
    if missing is None:
        return
    near = get_close_matches(str(missing), list(map(str, names)), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(map(repr, names))}"
    raise KeyError(f"there is no column {missing!r}; {hint}")


def library_of(data: object) -> str:
    """The library of a frame: pandas, polars, or pyarrow for all others."""
    name = type(data).__module__.partition(".")[0]
    return name if name in ("pandas", "polars") else "pyarrow"


def frame_of(table: Any, library: str) -> Any:
    """A table of pyarrow as a frame of a library."""
    if library == "pandas":
        return table.to_pandas()
    return polars_of(table) if library == "polars" else table


def spec_of(by: Sequence[str], aggregations: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """A spec that lacks its source."""
    rest = {name: value for name, value in options.items() if value is not None and name not in OF_TABLES}
    return {"kind": "groupby", "by": list(by), "aggregations": [dict(asked) for asked in aggregations], **rest}


def source_of(data: object, columns: Sequence[str], options: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """The source of a spec for a frame, whose `columns` are uploaded as a file of Arrow, or for a file."""
    of_files = {name: options[name] for name in sorted(OF_TABLES) if options.get(name) is not None}
    if sources.is_file(data):
        if isinstance(data, ManyFiles):
            from warpfold.client.files_here import check_table

            check_table(data.here, columns, of_files, data.called)
        named = yield from sources.source(data)
        return {**named, **of_files}
    if of_files:
        raise TypeError(f"{', '.join(of_files)} are options of a file, and a frame is not a file")
    from pyarrow import ipc

    table = table_of(data, columns)
    with tempfile.TemporaryDirectory(prefix="warpfold-") as folder:
        path = Path(folder) / "frame.arrow"
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table.combine_chunks())
        return (yield from sources.source(path, rehash=True))


def _reduced(
    data: object,
    by: Sequence[str],
    aggregations: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
) -> Steps[Any]:
    """Hand in a group-by, wait for it, and fetch its table."""
    columns = [*by, *(str(asked["column"]) for asked in aggregations)]
    made = spec_of(by, aggregations, options)
    made["source"] = yield from source_of(data, columns, options)
    job = yield from jobs.submit(made, None)
    return frame_of((yield from groups_of_job(job)), library_of(data))
