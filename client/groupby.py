"""Group-by of data frames: a frame is uploaded, reduced by its keys, and comes back as a frame of the same library."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from warpfold.client import artefacts, jobs, sources
from warpfold.client.exchange import Steps
from warpfold.client.group_table import GroupTable, polars_of
from warpfold.client.groups import parameters_in
from warpfold.client.jobs import Follow
from warpfold.client.models import Job
from warpfold.client.progress import shown
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
    digits: int
    states: bool
    fingerprint: bool
    timeout_s: float
    priority: "Priority"
    tags: Mapping[str, str]
    show_progress: bool | None


_OF_THE_CLIENT = ("show_progress",)


class GroupBy:
    """The groups of the rows of a frame. Each method hands in one job and waits for it, and gives a frame with the keys
    and the values as columns: of pandas or Polars, whichever came in, and of pyarrow otherwise. A terminal shows a
    progress bar, unless `show_progress` of the options is false. Raises JobFailed, KeyError for a column that is not
    there, and ImportError without pyarrow."""

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

    def count(self, *columns: str) -> Any:
        """How many elements there are that are no nulls; see `sum`."""
        return self._made_of("count", columns)

    def size(self) -> Any:
        """How many rows each group has, in a column called size."""
        from warpfold.client.describing import sizes

        return self._shown(lambda follow: sizes(self._data, self._by, self._options, follow))

    def describe(self, *columns: str, q: Sequence[float] = (0.25, 0.5, 0.75)) -> Any:
        """How many elements there are that are no nulls, and without NaNs their mean, std, skew and kurtosis of a
        sample, min, the quantiles `q` and max, in columns called price_mean and the like; see `sum`."""
        from warpfold.contract.described import describing

        kinds = kinds_of(self._data, self._options)
        asked = describing(kinds, columns or self._numbers(kinds), q)
        counts = [{"op": "count", "column": name} for name in dict.fromkeys(each["column"] for each in asked)]
        named = [*counts, *(each for each in asked if each["op"] != "count_nonzero")]
        aggregations = [{**each, "name": f"{each['column']}_{each['op']}"} for each in named]
        return self._reduced(aggregations, {"nan_policy": "omit", **self._options})

    def _made_of(self, op: str, columns: Sequence[str], **parameters: Any) -> Any:
        chosen = columns or self._numbers(kinds_of(self._data, self._options))
        return self._made([(column, op, column) for column in chosen], parameters)

    def _numbers(self, kinds: Mapping[str, Any]) -> Sequence[str]:
        """The columns of numbers that are no keys. Raises ValueError where there is none."""
        numbers = [name for name, kind in kinds.items() if name not in self._by and is_number(kind)]
        if not numbers:
            raise ValueError("there is no column of numbers beside the keys: name a column to reduce")
        return numbers

    def _made(self, asked: Sequence[tuple[str, str, str]], parameters: Mapping[str, Any]) -> Any:
        if not asked:
            raise ValueError("name a column to reduce")
        aggregations = [
            {"column": column, "op": op, "name": name, **parameters_of(op, parameters)} for column, op, name in asked
        ]
        return self._reduced(aggregations, self._options)

    def _reduced(self, aggregations: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Any:
        return self._shown(lambda follow: reduced(self._data, self._by, aggregations, options, follow))

    def _shown(self, steps_of: Callable[[Follow | None], Steps[Any]]) -> Any:
        return self._do(shown(self._options.get("show_progress"), steps_of))


def parameters_of(op: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that an aggregation by `op` takes, without those that are left out."""
    row, chosen = OPS.get(op), {name: value for name, value in parameters.items() if value is not None}
    if row is None:  # it is refused by its name, before anything is sent
        return {}
    taken = {name: value for name, value in chosen.items() if name in row.takes}
    taken = parameters_in(taken)
    return {**taken, "ddof": chosen["ddof"]} if row.ddof and chosen.get("ddof") else taken


def groups_of_job(job: Job, follow: Follow | None = None) -> Steps[Any]:
    """All groups of a group-by, once it has ended. Raises JobFailed, and TypeError for another kind."""
    result = jobs.result_of((yield from jobs.wait(job, None, follow)))
    if not isinstance(result, GroupTable):
        raise TypeError(f"job {job.id} is of kind {job.kind}, and makes no groups")
    return (yield from artefacts.groups_of(result))


def _listed(ops: Ops) -> Sequence[str]:
    return [ops] if isinstance(ops, str) else ops


def kinds_of(data: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """The types of pyarrow of the columns of a frame, or of a file or the first of several, by their names. Raises
    TypeError for a file that the service reads, and InvalidInput for one that is no table."""
    if not sources.is_file(data):
        schema = table_of(data).schema
    else:
        here = data.here if isinstance(data, ManyFiles) else [data]
        if not here or not isinstance(here[0], Path):
            raise TypeError("name its columns, or describe a file or a frame: a file on the server is read there")
        from warpfold.client.files_here import schema_of

        schema = schema_of(
            here[0], {name: options[name] for name in sorted(OF_TABLES) if options.get(name) is not None}
        )
    return {str(field.name): field.type for field in schema}


def is_number(kind: Any) -> bool:
    """Whether a column of this type of pyarrow holds numbers or truth values."""
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean))


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
            table = _keeping_nans(pyarrow.Table.from_pandas(named, preserve_index=False), named)
        elif isinstance(data, Mapping):
            table = pyarrow.table({name: _column_of(values) for name, values in data.items()})
        else:
            table = pyarrow.table(data)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"this {type(data).__name__} is not a table of columns: {error}") from None
    _check_names(columns or (), table.column_names)
    chosen = table if columns is None else table.select(list(dict.fromkeys(columns)))
    return chosen.replace_schema_metadata(None)


def _keeping_nans(table: Any, frame: Any) -> Any:
    """The table of a frame of pandas, in which NaN is NaN in columns of NumPy's dtypes, which have no nulls."""
    import pyarrow

    for place, dtype in enumerate(frame.dtypes):
        if _is_float_of_numpy(dtype) and table.column(place).null_count:
            table = table.set_column(place, table.field(place).name, pyarrow.array(frame.iloc[:, place].to_numpy()))
    return table


def _is_float_of_numpy(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "f"


def _column_of(values: Any) -> Any:
    """A column of pyarrow, which is one of uint64 or of decimals where int64 does not hold the integers of a list."""
    import pyarrow

    if hasattr(values, "iloc") and _is_float_of_numpy(getattr(values, "dtype", None)):
        return pyarrow.array(values.to_numpy())  # a Series, whose NaN would be a null
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
    rest = {
        name: value
        for name, value in options.items()
        if value is not None and name not in (*OF_TABLES, *_OF_THE_CLIENT)
    }
    return {"kind": "groupby", "by": list(by), "aggregations": [dict(asked) for asked in aggregations], **rest}


def source_of(
    data: object, columns: Sequence[str], options: Mapping[str, Any], spec: Mapping[str, Any]
) -> Steps[dict[str, Any]]:
    """The source of a `spec` for a frame, whose `columns` are uploaded as a file of Arrow, or for a file. Raises
    InvalidInput where the columns are no keys, or are not reduced."""
    from warpfold.client.files_here import check_frame, check_table

    of_files = {name: options[name] for name in sorted(OF_TABLES) if options.get(name) is not None}
    if sources.is_file(data):
        here = data if isinstance(data, ManyFiles) else ManyFiles([data] if isinstance(data, Path) else [])
        check_table(here.here, spec, of_files, here.called)
        named = yield from sources.source(data)
        return {**named, **of_files}
    if of_files:
        raise TypeError(f"{', '.join(of_files)} are options of a file, and a frame is not a file")
    from pyarrow import ipc

    from warpfold.kernels.formats.frames import frame_of as formats_frame_of

    table = table_of(data, columns)
    check_frame(formats_frame_of(table), spec)
    with tempfile.TemporaryDirectory(prefix="warpfold-") as folder:
        path = Path(folder) / "frame.arrow"
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table.combine_chunks())
        return (yield from sources.source(path, rehash=True))


def reduced(
    data: object,
    by: Sequence[str],
    aggregations: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    follow: Follow | None = None,
) -> Steps[Any]:
    """Hand in a group-by, wait for it, `follow` being called with each state, and fetch its table."""
    columns = [*by, *(str(asked["column"]) for asked in aggregations)]
    made = spec_of(by, aggregations, options)
    made["source"] = yield from source_of(data, columns, options, made)
    job = yield from jobs.submit(made, None)
    return frame_of((yield from groups_of_job(job, follow)), library_of(data))
