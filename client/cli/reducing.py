"""The command that reduces a file: reduce."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpfold.client.cli import output
from warpfold.client.cli.backends import Backend, Partitions, RunOptions, checked_partitions
from warpfold.client.cli.counts import count_option
from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.files import DASH, Rehash, matching, one_array
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import Timeout, check_ended_well, service, wait_for
from warpfold.client.cli.text_options import with_text_options

if TYPE_CHECKING:
    from warpfold.client.cli.arrays import ArrayRequest

_EXAMPLES = """Examples:

warpfold reduce samples.npy

warpfold reduce samples.npy --op std --ddof 1 --json

warpfold reduce trips.parquet --column seconds --op quantile --q 0.5,0.99

warpfold reduce left.npy --op dot --other right.npy --backend cuda

warpfold reduce a.npy --op corr --other b.npy

warpfold reduce samples.npy --op mean --weights weights.npy

cat samples.npy | warpfold reduce -

warpfold reduce sales.parquet --column price --filter '{"op": "==", "column": "region", "value": "EU"}'

warpfold reduce ocean.nc --array temp --select '[0, {"stop": 10}]' --op max

warpfold reduce matrix.npy --axis 0 --op mean -o means.npy

warpfold reduce prices.npy --op mean --rolling 1000 -o means.npy

warpfold reduce steps.npy --op cumsum

warpfold reduce sales.parquet --by region,year --column price,quantity --op sum,max

warpfold reduce 'runs/*.npy' --op max

warpfold reduce 'part-*.parquet' --column price --as-one

warpfold reduce sales.parquet --column price,quantity --op sum,max

warpfold reduce 's3://bucket/run-*.zarr' --array temp

warpfold reduce 's3://bucket/run-*.npy' --backend dask --partitions 64

warpfold reduce samples.npy --local"""

_Texts = dict[str, str | int | None]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A file of yours, several, or 'runs/*.npy'; a URL; - is a .npy file from standard input.",
    ),
]
Keys = Annotated[
    str | None, typer.Option(metavar="KEYS", help="Reduce the rows of each group, by these columns of a table.")
]
Segments = Annotated[
    str | None, typer.Option(metavar="N", help="Reduce segments of this length, or between offsets: 0,3,9.")
]
ColumnDType = Annotated[
    str | None, typer.Option(help="Of the column of a CSV or TSV file, whose beginning else decides.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", dir_okay=False, help="Write arrays to .npy or .csv, groups to .csv."),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Jobs", epilog=_EXAMPLES)(reduce)


def complete_op(incomplete: str) -> list[tuple[str, str]]:
    """The completions of `--op` in the shell: the ops, each with its description."""
    from warpfold.client.groups import CUMULATIVE
    from warpfold.kernels.ops import OPS

    running = ((name, f"{op} of all elements so far") for name, op in CUMULATIVE.items())
    known = (*((op.name, op.summary) for op in OPS.values()), *running)
    return [(name, summary) for name, summary in known if name.startswith(incomplete)]


@with_text_options
def reduce(
    context: typer.Context,
    files: Files,
    *,
    op: Annotated[str, typer.Option(help="`warpfold ops` lists them.", autocompletion=complete_op)] = "sum",
    other: Annotated[str | None, typer.Option(help="The second array of dot, cov, corr, slope, …")] = None,
    weights: Annotated[str | None, typer.Option(metavar="FILE", help="An array of the weights.")] = None,
    weighting: Annotated[str | None, typer.Option(help="Of weights: frequency or reliability.")] = None,
    strategy: Annotated[str | None, typer.Option(help="`warpfold strategies` lists them.")] = None,
    backend: Backend = None,
    partitions: Partitions = None,
    nan_policy: Annotated[str | None, typer.Option(help="propagate, omit or raise.")] = None,
    ddof: Annotated[int | None, typer.Option(min=0, help="var, std, sem and cov divide by n − ddof.")] = None,
    digits: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of means of decimals and integers: so many digits.")
    ] = None,
    q: Annotated[str | None, typer.Option("--q", metavar="Q", help="Of quantile: 0.9, or several: 0.5,0.99.")] = None,
    method: Annotated[str | None, typer.Option(help="Of quantile: linear, hazen, …, as in NumPy.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Of nth: the place; −1 is the last one.")] = None,
    k: Annotated[int | None, count_option("Of top_k and its like: how many elements.", "--k")] = None,
    bins: Annotated[str | None, typer.Option(metavar="N", help="Of histogram: a number, or edges: 0,1,10.")] = None,
    ends: Annotated[str | None, typer.Option("--range", metavar="LOW,HIGH", help="Of so many --bins.")] = None,
    axis: Annotated[
        str | None, typer.Option(metavar="N", help="Reduce along this axis, or several: 0,2 or lat.")
    ] = None,
    by: Keys = None,
    keepdims: Annotated[bool, typer.Option("--keepdims", help="Keep reduced axes, with length 1.")] = False,
    segments: Segments = None,
    rolling: Annotated[int | None, count_option("Values of N neighbours, for each element.", least=1)] = None,
    width: Annotated[str | None, typer.Option(help="How far a window reaches in --over: 90s, 1.5h, 100.")] = None,
    over: Annotated[str | None, typer.Option(metavar="COLUMN", help="The sorted times, for --width.")] = None,
    closed: Annotated[str | None, typer.Option(help="Ends of --width: right, left, both or neither.")] = None,
    expanding: Annotated[bool, typer.Option("--expanding", help="Values of all elements so far.")] = False,
    centre: Annotated[bool, typer.Option("--centre", help="Elements stand in the middle of --rolling.")] = False,
    min_count: Annotated[int | None, count_option("Fewer elements have no value; else all of --rolling.")] = None,
    as_one: Annotated[bool, typer.Option("--as-one", help="All files are one array, or one table.")] = False,
    on_server: Annotated[bool, typer.Option("--server", help="FILE is a path on the server, or a pattern.")] = False,
    states: Annotated[bool, typer.Option("--states", help="Store exact states, for `warpfold merge`.")] = False,
    locally: Annotated[bool, typer.Option("--local", help="Compute on this machine, without a service.")] = False,
    rehash: Rehash = False,
    column: Annotated[str | None, typer.Option(help="The column of a table; with --by several: x,y.")] = None,
    dtype: ColumnDType = None,
    rows: Annotated[str | None, typer.Option("--filter", help="Which rows, as JSON.")] = None,
    array: Annotated[str | None, typer.Option(help="The array of an archive or a hierarchy.")] = None,
    select: Annotated[str | None, typer.Option(help="What of each axis, as JSON.")] = None,
    float8: Annotated[str | None, typer.Option(help="The bytes are floats of 8 bits: e4m3fn or e5m2.")] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Elements as stored, without attributes.")] = False,
    missing_chunks: Annotated[str | None, typer.Option(help="Chunks not in the file: fill or raise.")] = None,
    null_policy: Annotated[str | None, typer.Option(help="omit, raise or propagate.")] = None,
    text: dict[str, Any],
    fingerprint: Annotated[bool, typer.Option("--fingerprint", help="Tell the SHA-256 of the input, too.")] = False,
    to: Output = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Reduce a file, by default to its correctly rounded sum; with --axis, --segments or --rolling to an array,
    with --by to a table of groups.

    A .npy or .npz file, HDF5, NetCDF-4, Parquet, Arrow, Feather, CSV, TSV, JSON lines or .xlsx; `warpfold inspect`
    shows its contents. A large file is uploaded, once however often it is reduced; the service itself reads URLs
    (s3://, gs://, az://, https://), and a pattern of URLs is one array. The value goes to standard output, how it was
    computed to standard error. Several files, or a pattern, are reduced each by itself, in batches: a line has a value
    and the name of its file. With --as-one they have one value together. Several ops or columns (--op sum,max) make a
    line of values in one pass.
    """
    from warpfold.client.cli.arrays import ArrayRequest  # NumPy and more, for which help does not wait
    from warpfold.client.cli.groups import WindowOptions, check_file, fields_from, numbers_from
    from warpfold.client.cli.opening import check_dtype, check_op, options_of
    from warpfold.client.groups import CUMULATIVE, of_several, parameters_in

    chosen = {"strategy": strategy, "nan_policy": nan_policy, "ddof": ddof, "backend": backend} | {
        "digits": digits,
        "q": numbers_from(q, "--q"),
        "method": method,
        "n": n,
        "k": k,
        "bins": numbers_from(bins, "--bins"),
        "range": numbers_from(ends, "--range"),
        "weighting": weighting,
        "partitions": checked_partitions(partitions, backend),
        "states": _checked_states(states, by, axis or segments, locally=locally),
        "fingerprint": fingerprint or None,
    }
    fields = {name: value for name, value in chosen.items() if value is not None}
    for each in op.split(","):
        check_op(CUMULATIVE.get(each, each), {} if "," in op else fields)
    how = RunOptions(locally=locally, rehash=rehash, to=to, timeout=timeout, as_json=as_json)
    beside = {name: file for name, file in (("other", other), ("weights", weights)) if file is not None}
    _check_where(files, beside, backend, locally=locally, as_one=as_one, on_server=on_server)
    whole = one_array(files, as_one=as_one, on_server=on_server)
    in_one_pass = "," in op or "," in (column or "")
    check_dtype(dtype, () if by is not None or in_one_pass else whole)
    window = WindowOptions(rolling, width, expanding, centre, closed, min_count).window(op)
    if (over is not None) != ("width" in window):
        raise typer.BadParameter("--width and --over, which has the times, go together", param_hint="--over")
    of_rows: _Texts = {"filter": rows, "null_policy": null_policy, **text}
    of_array: _Texts = {
        "array": array,
        "select": select,
        "float8": float8,
        "stored": stored or None,
        "missing_chunks": missing_chunks,
    }
    if (by is not None and not window) or in_one_pass:
        hint = "--by" if by is not None else "--op"
        if any((beside, axis, segments, over, window)) or (by is not None and any(of_array.values())):
            raise typer.BadParameter("takes one table, and no other shape", param_hint=hint)
        if not whole:
            raise typer.BadParameter("takes one file, or several with --as-one", param_hint=hint)
        from warpfold.client.cli.keyed import GroupByRequest, reduce_by

        reduce_by(context, whole, GroupByRequest(by, column, op, fields, options_of(of_rows | of_array)), how)
        return
    of_file = options_of({"column": column, "dtype": dtype} | of_rows | of_array)
    shape = fields_from(axis, segments, keepdims=keepdims, window=window)
    if of_several(fields):
        shape |= {name: fields.pop(name) for name in parameters_in(fields)}
    columns = {name: column for name, column in (("over", over), ("keys", by)) if column is not None}
    together = whole if as_one or on_server else ()
    asked = ArrayRequest(CUMULATIVE.get(op, op), fields, shape, of_file, columns, together)
    check_file(to, asked.shape, as_json=as_json)
    if together and (beside or columns):
        raise typer.BadParameter("takes no --other, --weights or --over", param_hint="--as-one")
    if not whole:
        _check_each(beside, asked, how)
        _reduce_each(context, matching(files), asked, how)
    elif locally:
        from warpfold.client.cli.here import reduce_here

        reduce_here(files[0], beside, asked, how)
    else:
        _reduce_there(context, files[0], beside, asked, how)


def _checked_states(states: bool, by: str | None, shape: str | None, *, locally: bool) -> bool | None:
    if states and by is None and (locally or shape is None):
        raise typer.BadParameter("needs --axis or --segments without --local, or --by", param_hint="--states")
    return states or None


def _check_where(
    files: list[str],
    beside: Mapping[str, str],
    backend: str | None,
    *,
    locally: bool,
    as_one: bool,
    on_server: bool,
) -> None:
    from warpfold.kernels.places.place import is_url

    if locally and backend not in (None, "auto", "cpu"):
        raise typer.BadParameter("--local computes on the CPU", param_hint="--backend")
    remote = on_server or any(map(is_url, (*files, *beside.values())))
    if remote and (locally or (len(files) > 1 and not as_one)):
        raise typer.BadParameter(
            "the service reduces a URL or a file of its own, one at a time or with --as-one", param_hint="FILE"
        )
    read = [name for name, file in (("FILE", files[0]), *beside.items()) if file == DASH]
    if len(read) > 1:
        raise typer.BadParameter("standard input is one array, not two", param_hint=f"--{read[-1]}")


def _reduce_there(
    context: typer.Context, file: str, beside: Mapping[str, str], asked: "ArrayRequest", how: RunOptions
) -> None:
    """Have the service reduce one array, with the others `beside` it."""
    from warpfold.client.cli.arrays import read_array, sent_first
    from warpfold.client.cli.groups import print_array
    from warpfold.client.cli.opening import faults
    from warpfold.client.cli.values import print_value

    with ExitStack() as opened:
        whole = opened.enter_context(sent_first(file, asked, alone=not beside))
        others = {
            name: opened.enter_context(read_array(each, f"--{name}", asked.of_file)) for name, each in beside.items()
        }
        client = opened.enter_context(service(context))
        sent = {name: opened.enter_context(part.sent(f"--{name}")) for name, part in others.items()}
        fields = {**asked.fields, **asked.of_file, **asked.shape, **sent}
        if asked.columns:
            fields["window"] = {**asked.shape["window"], **asked.columns}
        with faults("", "FILE"):  # which the client finds before it sends
            job = client.submit_reduce(whole, asked.op, rehash=how.rehash, **fields)
        ended = wait_for(job, how.timeout)
        if how.as_json:
            output.document(ended)
            check_ended_well(ended)
        elif asked.shape:
            print_array(client, ended, how.to)
        else:
            print_value(ended, fingerprint="fingerprint" in asked.fields)


def _check_each(beside: Mapping[str, str], asked: "ArrayRequest", how: RunOptions) -> None:
    if asked.shape:
        raise typer.BadParameter("--axis, --segments, windows and several values take a single file", param_hint="FILE")
    if beside or how.timeout is not None:
        raise typer.BadParameter(
            "--other, --weights and --timeout take a single file, or several that are one with --as-one",
            param_hint="FILE",
        )


def _reduce_each(context: typer.Context, paths: list[Path], asked: "ArrayRequest", how: RunOptions) -> None:
    """Reduce each of several files by itself, on this machine or by the service."""
    if how.locally:
        from warpfold.client.cli.here import reduce_each_here

        reduce_each_here(paths, asked, how)
        return
    from warpfold.client.cli.arrays import read_array
    from warpfold.client.errors import JobFailed

    def contents() -> Iterator[object]:
        for path in paths:
            with read_array(str(path), "FILE", asked.of_file) as read, read.sent("FILE") as whole:
                yield whole

    for path in paths:  # every file is checked before any file is sent
        with read_array(str(path), "FILE", asked.of_file):
            pass
    failed = 0
    with service(context) as client:
        fields = {**asked.fields, **asked.of_file}
        reduced = client.map(asked.op, contents(), failures="yield", rehash=how.rehash, **fields)
        for path, result in zip(paths, reduced, strict=True):
            if isinstance(result, JobFailed):
                failed += 1
                output.say(f"{path}: {result}")
            elif how.as_json:
                output.lines([{"file": str(path), **result.model_dump(mode="json")}])
            else:
                typer.echo(f"{result.words}\t{path}")
    if failed:
        raise fail(f"{failed} of {len(paths)} files have no value", Exit.FAILED)
