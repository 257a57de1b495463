"""Conversations about arrays: a small one goes along with the job, a large one is uploaded first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from warpfold.client import artefacts, groups, jobs
from warpfold.client.array_files import AsFile, is_complex
from warpfold.client.exchange import Steps
from warpfold.client.groups import (
    Axis,
    OpOptions,
    Rolling,
    Segments,
    cumulative,
    fields_of,
    of_several,
    op_of,
    parameters_in,
)
from warpfold.client.job_results import ReduceArrayResult, ReduceResult
from warpfold.client.jobs import Follow
from warpfold.client.later import Later
from warpfold.client.models import Job
from warpfold.client.sources import Listed, ManyFiles, as_file, is_file, source
from warpfold.client.table_options import OF_TABLES, TableOptions
from warpfold.client.uploads import EarlyJob, begins_as_npy
from warpfold.contract.needs import DASK
from warpfold.kernels.dtypes import dtype_named, dtype_of
from warpfold.kernels.formats.signature import is_text
from warpfold.kernels.ops import OPS, NullPolicy, Parameters
from warpfold.kernels.strategy import AUTO, EXACT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpfold.client import arrays
    from warpfold.client.arrays import Nulls, Part
    from warpfold.contract.fields import Priority, ReduceBackendName
else:
    arrays = Later("warpfold.client.arrays")


class Options(OpOptions, TableOptions, total=False):
    """The options of a reduction besides its op. The service's defaults hold for options that are left out (`POST
    /v1/jobs`). The options from `array` on, and those of tables, choose elements of a file that is given as a Path or
    a URL (docs/sources.md). With `as_one` a list of files is one array: Paths, URLs, and as strings the paths of files
    on the server."""

    strategy: str
    backend: "ReduceBackendName"
    partitions: int
    nan_policy: str
    ddof: int
    digits: int
    weighting: str
    states: bool
    fingerprint: bool
    timeout_s: float
    priority: "Priority"
    tags: Mapping[str, str]
    array: str
    select: Sequence[Any]
    stored: bool
    missing_chunks: str
    float8: str
    column: str
    as_one: bool


class ReduceOptions(Options, total=False):
    """The options with the other arguments of `reduce`."""

    other: object
    weights: object
    dtype: str | None
    rehash: bool
    show_progress: bool | None


class GroupOptions(Options, total=False):
    """The options with those that make the result an array."""

    axis: Axis | None
    keepdims: bool
    segments: Segments | None
    window: Rolling | None


OF_FILES = OF_TABLES | {"array", "select", "stored", "missing_chunks", "float8", "column"}
"""The options that apply to a file."""


def reduce(
    data: object,
    op: str,
    *,
    other: object,
    weights: object = None,
    dtype: str | None,
    options: Options,
    follow: Follow | None,
    rehash: bool = False,
) -> Steps[ReduceResult]:
    """Hand in the reduction of an array, or of two, to one value, and wait for it.

    Columns that no dtype holds together are reduced apart, where `op` has an exact state; their states are added, and
    the sum is rounded once. Nulls of columns are left out and counted, unless the options say otherwise.
    """
    parts: list[Part] = []
    data = as_file(data, dtype)
    propagate = options.get("null_policy") == NullPolicy.PROPAGATE
    if not is_file(data) and other is None and weights is None:
        nulls, options = _nulls_of(op, options)
        parts = arrays.parts_of(data, dtype, nulls="omit" if propagate else nulls)
    null = propagate and any(part.nulls for part in parts)
    if len(parts) < 2:
        whole = parts[0].array if parts else data
        typed = None if parts else dtype
        job = yield from submit(whole, op, other=other, weights=weights, dtype=typed, rehash=rehash, options=options)
        result = jobs.reduction_of((yield from jobs.wait(job, None, follow)))
        return _with_nulls(result, result.nulls + parts[0].nulls, null=null) if parts else result
    from warpfold.client.apart import reduce_apart  # which adds exact states

    return _with_nulls(
        (yield from reduce_apart(parts, op, options, follow)), sum(part.nulls for part in parts), null=null
    )


def _with_nulls(result: ReduceResult, nulls: int, *, null: bool) -> ReduceResult:
    """The result of the elements that are values, with the number of nulls, which may make the value `null`."""
    gone = {"value": None, "hex": None, "decimal": None, "fraction": None, "time": None, "state": None} if null else {}
    return result.model_copy(update={"nulls": nulls, **gone})


def _nulls_of(op: str, options: Options) -> "tuple[Nulls, Options]":
    """The policy for the nulls of columns in memory, and the options without it. Raises TypeError."""
    rest = options.copy()
    policy = rest.pop("null_policy", None)
    return arrays.policy_of(policy, places=op in OPS and OPS[op].places), rest


def reduce_any(
    data: object,
    op: str,
    fields: Mapping[str, Any],
    other: object,
    dtype: str | None,
    *,
    options: Options,
    follow: Follow | None,
    rehash: bool,
    weights: object = None,
) -> Steps[Any]:
    """Hand in a reduction and wait for it: for its value, or where `fields` name an axis or segments, or the options
    several values of each group, for an array."""
    op, fields = cumulative(op, fields)
    data, options = _as_one(data, options)
    options, fields = _with_parameters(options, fields)
    if fields:
        return reduce_groups(
            data, op, fields, other=other, weights=weights, dtype=dtype, options=options, follow=follow, rehash=rehash
        )
    return reduce(data, op, other=other, weights=weights, dtype=dtype, options=options, follow=follow, rehash=rehash)


def _as_one(data: object, options: Any) -> tuple[object, Any]:
    """The data, and the options without `as_one`, by which a list of files is one array. Raises TypeError for a list of
    anything else."""
    rest = {name: value for name, value in options.items() if name != "as_one"}
    if not options.get("as_one"):
        return data, rest
    if not isinstance(data, ManyFiles) and (data := ManyFiles.among(data)) is None:
        raise TypeError("as_one takes a list of files: Paths of this machine, and URLs and paths of the server")
    return data, rest


def _with_parameters(options: Any, fields: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The options and the fields, of which these have parameters that ask for several values: they are an array."""
    parameters = parameters_in(options)
    rest = {name: value for name, value in options.items() if name not in Parameters.names()}
    return (rest, {**fields, **parameters}) if of_several(parameters) else ({**rest, **parameters}, fields)


def reduce_groups(
    data: object,
    op: str,
    fields: Mapping[str, Any],
    *,
    other: object,
    weights: object = None,
    dtype: str | None,
    options: Options,
    follow: Follow | None,
    rehash: bool = False,
) -> "Steps[NDArray[Any]]":
    """Hand in a reduction along axes or by segments, which `fields` of the spec name, and wait for its values."""
    job = yield from submit(
        data, op, other=other, weights=weights, dtype=dtype, rehash=rehash, options=options, fields=fields
    )
    result = jobs.result_of((yield from jobs.wait(job, None, follow)))
    assert isinstance(result, ReduceArrayResult), "the service answers a reduction along axes with an array"
    return (yield from artefacts.array_of(result))


def submit(
    data: object,
    op: str,
    *,
    other: object,
    weights: object = None,
    dtype: str | None,
    options: Options,
    rehash: bool = False,
    key: str | None = None,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> Steps[Job]:
    """Hand in the reduction of an array, or of two; `fields` of the spec name the axis or the segments, if there are
    any. Raises TypeError for columns that no dtype holds together."""
    data, other = as_file(data, dtype), None if other is None else as_file(other, dtype)
    if weights is not None:
        data, other, weights = (
            _in_place(each, kind) for each, kind in ((data, dtype), (other, dtype), (weights, None))
        )
    if other is not None and not is_file(data) and not is_file(other):
        data, other = arrays.alike(data, other, dtype)
        dtype = None
    elif other is not None:
        data, other = _beside_complex(data, other), _beside_complex(other, data)
    elif other is None and weights is None and not is_file(data) and not fields.keys() - {*Parameters.names()}:
        nulls, options = _nulls_of(op, options)
        data, dtype = arrays.as_kept(data, dtype, nulls), None
    alone = other is None and weights is None and not fields
    early = _early(op, options) if key is None and alone else None
    made = yield from spec(
        data, op, other=other, weights=weights, dtype=dtype, options=options, rehash=rehash, fields=fields, early=early
    )
    if early is not None and early.job is not None:
        job = yield from jobs.get(early.job.id)
        if job.status != "failed" or f"upload {job.spec['source']['id']}" not in (job.error or ""):
            return job
    return (yield from jobs.submit(made, key))


def _in_place(data: object, dtype: str | None) -> object:
    """An array whose elements all stand in their places beside weights; a file as it is. Raises TypeError for nulls."""
    return data if data is None or is_file(data) else arrays.as_kept(data, dtype, "raise")


def _beside_complex(data: object, other: object) -> object:
    """`data` as floats, where it has numbers and stands beside complex ones."""
    if not is_complex(other) or is_file(data):
        return data
    array = arrays.as_numpy(data)
    return array if dtype_of(array.dtype).is_float else arrays.as_numpy(array, "float64")


def _early(op: str, options: Options) -> EarlyJob | None:
    """The job that reduces an array while it is sent, unless its strategy may add in another order then."""
    chosen = {name: value for name, value in options.items() if value is not None}
    if OF_FILES & chosen.keys() or chosen.get("backend") == DASK or chosen.get("strategy", AUTO) not in (AUTO, EXACT):
        return None
    return EarlyJob({"kind": "reduce", "op": op, **chosen})


def submit_any(
    data: object,
    op: str,
    *,
    other: object,
    weights: object = None,
    dtype: str | None,
    options: GroupOptions,
    rehash: bool = False,
) -> Steps[Job]:
    """Hand in a reduction to one value or to many. Raises TypeError as `submit`."""
    rest: Any = dict(options)
    fields = fields_of(*(rest.pop(name, None) for name in ("axis", "keepdims", "segments", "window")))
    op, shape = cumulative(op, fields)
    data, rest = _as_one(data, rest)
    rest, shape = _with_parameters(rest, shape)
    return submit(data, op, other=other, weights=weights, dtype=dtype, rehash=rehash, options=rest, fields=shape)


def spec(
    data: object,
    op: str,
    *,
    options: Options,
    other: object = None,
    weights: object = None,
    dtype: str | None = None,
    rehash: bool = False,
    fields: Mapping[str, Any] = MappingProxyType({}),
    early: EarlyJob | None = None,
) -> Steps[dict[str, Any]]:
    """The spec of a reduction, whose arrays are uploaded unless they are small; the `early` job of it may be handed in
    meanwhile. Raises TypeError where an option is for files, and `data` or `other` is not a file."""
    data, options = _as_one(data, options)
    chosen = {name: value for name, value in options.items() if value is not None}
    of_files = {name: chosen.pop(name) for name in OF_FILES & chosen.keys()}
    op_of(op, parameters_in({**fields, **chosen}))  # what is wrong is refused before a file is sent
    if dtype is not None:
        dtype_named(dtype)
    made: dict[str, Any] = {"kind": "reduce", "op": op}
    beside = {name: fields[name] for name in groups.BESIDE_WINDOWS if name in fields}
    for field, whole in {"source": data, "other": other, "weights": weights, **beside}.items():
        if field in beside and isinstance(whole, str):
            made[field] = {**made["source"], "column": whole}
        elif field == "source" or whole is not None:
            kind = dtype if field in ("source", "other") else None
            array = as_file(whole, kind)
            taken = {"null_policy"} if isinstance(array, AsFile) else OF_FILES if is_file(array) else set()
            if field not in beside and (refused := of_files.keys() - taken):
                raise TypeError(f"{', '.join(sorted(refused))} are options of a file, and {field} is not a file")
            alone = field == "source" and other is None and weights is None and not beside
            asked = {**fields, **chosen, **made} if alone else None
            _look_at(array, of_files, kind, fields.get("axis") if field == "source" else None, asked)
            made[field] = yield from source(array, kind, rehash=rehash, shaped="axis" in fields, early=early)
            made[field] |= {} if field in beside else of_files
    return dict(fields) | made | chosen


def _look_at(
    data: object, options: Mapping[str, Any], dtype: str | None, axis: Axis | None, asked: Mapping[str, Any] | None
) -> None:
    """Raise InvalidInput, before anything is sent, where files are not one array, or lack what an option names, where
    an array has not such an axis, and where the spec of a file is none: `asked` is the spec without its source. A
    plain .npy file of which neither is asked is not looked at."""
    files = ManyFiles([data]) if isinstance(data, Path) and data.is_file() else data
    if isinstance(files, ManyFiles):
        if isinstance(data, Path) and not options and axis is None and begins_as_npy(data):
            return
        from warpfold.client.files_here import check_array  # which imports what reads every format

        typed = {"dtype": dtype} if dtype is not None and all(is_text(str(file)) for file in files.files) else {}
        here, of_file = files.here, {**options, **typed}
        source_here = {**files.of_uploads(["0" * 64] * len(here)), **of_file}
        spec_here = None if asked is None else {**asked, "source": source_here}
        check_array(here, of_file, files.called, axis, spec_here)
    elif axis is not None and (isinstance(data, Listed) or not is_file(data)):
        from warpfold.client.files_here import check_axis

        shape = data.shape if isinstance(data, Listed) else arrays.as_numpy(data, dtype).shape
        check_axis(shape, axis, data.called if isinstance(data, Listed) else "the array")
