"""Reductions without a service: on this machine, by the same code that the service's CPU slots run."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Unpack

from numpy.typing import NDArray
from pydantic import ValidationError

from warpfold.client.array_files import ArrayAsFile, AsFile
from warpfold.client.arrays import Nulls, alike, as_kept, policy_of
from warpfold.client.as_files import as_file
from warpfold.client.groups import OpOptions, of_several, op_of, parameters_in
from warpfold.kernels.backend import LISTED, GroupedReduction, Reduction
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.exact import ORIGIN, ExactState, value_of
from warpfold.kernels.formats.arrays import elements_of
from warpfold.kernels.formats.conventions import Conventions
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.lowering.decimals import with_digits
from warpfold.kernels.lowering.reducing import meaning_of
from warpfold.kernels.machine.extras import install, installed
from warpfold.kernels.open import open_backend
from warpfold.kernels.ops import NanPolicy, NullPolicy, Op, empty_value, op_named
from warpfold.kernels.ops.operands import Operands, operands
from warpfold.kernels.ops.weights import Weighting
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import GroupTable
from warpfold.kernels.parts.rolling import Layout
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.file_checks import intact
from warpfold.kernels.sources.sequential import Elements, gathered, shaped
from warpfold.kernels.strategy import AUTO, EXACT


def reduce(
    data: object,
    op: str = "sum",
    *,
    other: object = None,
    weights: object = None,
    weighting: str = "frequency",
    strategy: str = "auto",
    nan_policy: str = "propagate",
    null_policy: str = "omit",
    ddof: int = 0,
    **parameters: Unpack[OpOptions],
) -> Reduction:
    """Reduce an array, or two, here and now: any array that `client.arrays.as_numpy` takes, and times, decimals and
    complex numbers as `client.as_files` has them. Nulls of columns are left out, or with `null_policy` "raise" are a
    TypeError, as they are where every element is needed in its place; of times and decimals they are InvalidInput.

    With the server's packages every op and every CPU strategy is there, at the speed of a CPU slot; with the base
    installation the exact strategy of sums and products, in NumPy, much slower and with the same bits. Raises
    InvalidInput, TypeError for an object that is no array of numbers, and Unavailable for reductions that need the
    server's packages.
    """
    nulls = policy_of(null_policy, places=op_named(op).places)
    data, other = as_file(data), None if other is None else as_file(other)
    with ExitStack() as opened:
        beside = None if weights is None else _elements(as_file(weights), "raise", opened)
        if other is None:
            first, second = _elements(data, nulls if weights is None else "raise", opened), None
        elif isinstance(data, AsFile) or isinstance(other, AsFile):
            first, second = (_elements(each, "raise", opened) for each in (data, other))
        else:
            first, second = map(ArraySource, alike(data, other))
        how: dict[str, Any] = {"strategy": strategy, "nan_policy": nan_policy, "ddof": ddof}
        return reduce_elements(first, op, other=second, weights=beside, weighting=weighting, **parameters, **how)


def _elements(data: object, nulls: Nulls, opened: ExitStack) -> Elements:
    if isinstance(data, AsFile):
        policy = NullPolicy.RAISE if nulls == "raise" else NullPolicy.OMIT
        return opened.enter_context(_elements_of(data, policy))
    return ArraySource(as_kept(data, None, nulls))


def reduce_elements(
    first: Elements,
    op: str,
    *,
    other: Elements | None = None,
    weights: Elements | None = None,
    weighting: str = "frequency",
    strategy: str = "auto",
    nan_policy: str = "propagate",
    ddof: int = 0,
    digits: int | None = None,
    **parameters: Unpack[OpOptions],
) -> Reduction:
    """Reduce elements of any source, such as those of a file that is larger than the memory. Raises as `reduce`."""
    first = first if digits is None else with_digits(first, digits)
    second, policy = other, _policy(nan_policy)
    row = op_of(op, parameters_in(parameters))
    if installed("numba"):
        backend = open_backend("cpu")
        with intact([("", part) for part in (first, second, weights)]):
            return backend.reduce(
                first, row, strategy=strategy, nan_policy=policy, ddof=ddof, other=second, weights=weights,
                weighting=_weighting(weighting),
            )  # fmt: skip
    for part in (first, second):
        if part is not None and (meaning := meaning_of(part)) is not None:
            raise Unavailable(f"{op} of {meaning.name} needs the server's packages here: {install('server')}")
    taken = operands(row, first, second, ddof)
    if (
        row.terms not in ORIGIN
        or weights is not None
        or strategy not in (AUTO, EXACT)
        or policy is not NanPolicy.PROPAGATE
    ):
        raise Unavailable(f"{op} needs the server's packages here: {install('server')}")
    whole = [gathered(part) for part in (first, second) if part is not None]
    with intact([("", part) for part in whole]):
        array, *rest = (part.read(0, part.count) for part in whole)
    return _portable(row, taken, array, rest[0] if rest else None)


def reduce_groups(
    first: Elements,
    op: str,
    grouping: Layout,
    *,
    other: Elements | None = None,
    weights: Elements | None = None,
    over: Elements | None = None,
    keys: Elements | None = None,
    weighting: str = "frequency",
    strategy: str = "auto",
    nan_policy: str = "propagate",
    ddof: int = 0,
    digits: int | None = None,
    **parameters: Unpack[OpOptions],
) -> GroupedReduction:
    """Reduce along axes, by segments or in windows, which may have times `over` and `keys`; several values of a group
    lie on a last axis. Raises InvalidInput, and Unavailable without the server's packages."""
    first = first if digits is None else with_digits(first, digits)
    policy, row = _policy(nan_policy), op_of(op, parameters_in(parameters))
    if not installed("numba"):
        raise Unavailable(f"reductions along axes and by segments need the server's packages here: {install('server')}")
    backend = open_backend("cpu")
    operands = {"source": first, "other": other, "weights": weights}
    opened = {field: shaped(source, None) for field, source in operands.items() if source is not None}
    shape = opened["source"][1]
    for field, (_, beside) in opened.items():
        if isinstance(grouping, AlongAxes) and beside != shape:
            raise InvalidInput(f"{op} needs two sources of one shape, not {shape} and {beside}", field)
    sources = {field: source for field, (source, _) in opened.items()}
    with intact([("", part) for part in sources.values()]):
        return backend.reduce_groups(
            sources["source"], shape, grouping, row, strategy=strategy, nan_policy=policy, ddof=ddof,
            other=sources.get("other"), weights=sources.get("weights"), weighting=_weighting(weighting),
            over=over, keys=keys, fractions=prod(grouping.result_shape(shape)) <= LISTED,
        )  # fmt: skip


def group_by(spec: Mapping[str, Any], root: Path) -> GroupTable:
    """Reduce by key as a `groupby` spec says, whose files lie below the folder `root`. Raises InvalidInput, and
    Unavailable without the server's packages."""
    if not installed("numba"):
        raise Unavailable(f"reductions by key need the server's packages here: {install('server')}")
    from warpfold.contract.folders import Folders  # specs of tables, which a reduction of an array does not need
    from warpfold.contract.keyed import open_rows, plan_of
    from warpfold.contract.kinds.groupby import GroupbySpec

    asked = GroupbySpec.model_validate(spec)
    backend = open_backend("cpu")
    rows = open_rows(asked, Folders((root,), root))
    with intact(rows.files):
        table: GroupTable = backend.group_by(rows, plan_of(asked))
        return replace(table, dialects=rows.dialects(), files=rows.counts())


def _portable(row: Op, taken: Operands, array: NDArray[Any], other: NDArray[Any] | None) -> Reduction:
    started = time.perf_counter()
    if other is not None:
        state = ExactState.of_products(array, other)
    else:
        state = ExactState.of(array, row.terms, magnitudes=row.magnitudes)
    result = taken.result_dtype(row)
    return Reduction(
        value=value_of(row, [state], result) if state.count else empty_value(row, taken.source.dtype),
        dtype=result,
        count=state.count,
        op=row.name,
        strategy=EXACT,
        correctly_rounded=True,
        load_ms=0.0,
        kernel_ms=(time.perf_counter() - started) * 1000,
        state=state.to_bytes(),
    )


def _weighting(name: str) -> Weighting:
    try:
        return Weighting(name)
    except ValueError:
        raise InvalidInput(f"unknown weighting {name!r}; known: {', '.join(Weighting)}", "weighting") from None


def _policy(name: str) -> NanPolicy:
    try:
        return NanPolicy(name)
    except ValueError:
        raise InvalidInput(f"unknown NaN policy {name!r}; known: {', '.join(NanPolicy)}", "nan_policy") from None


def grouping_of(fields: Mapping[str, Any]) -> Layout | None:
    """The grouping for a reduction on this machine. Raises InvalidInput for a window that there is not."""
    lines = _lines_of(fields)
    if "window" not in fields:
        return lines
    from warpfold.contract.faults import first_fault
    from warpfold.contract.windows import WindowSpec

    try:
        return WindowSpec.model_validate(fields["window"]).within(lines)
    except ValidationError as error:
        fault = first_fault(error)
        field = f"window.{fault.field}" if fault.field else "window"
        raise InvalidInput(f"{field}: {fault}", field) from None


def _lines_of(fields: Mapping[str, Any]) -> Grouping | None:
    if "segments" in fields:
        segments = fields["segments"]
        offsets = segments.get("offsets")
        return Segments(None if offsets is None else tuple(offsets), segments.get("length"))
    if "axis" not in fields:
        return AlongAxes(None) if of_several(fields) else None
    axis = fields["axis"]
    return AlongAxes((axis,) if isinstance(axis, int) else tuple(axis), bool(fields.get("keepdims")))


@contextmanager
def _elements_of(data: AsFile, nulls: NullPolicy) -> Iterator[Elements]:
    """The elements for a reduction on this machine, within the block."""
    if isinstance(data, ArrayAsFile):
        yield elements_of(data.array, Conventions(nulls=nulls))
        return
    with TemporaryFile() as file:
        data.write(file)
        file.flush()
        yield open_column(file, ColumnWanted(nulls=nulls))
