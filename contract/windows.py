"""Windows that move along the elements: which of them make the value at each place."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from warpfold.contract.fields import MAX_ELEMENTS
from warpfold.contract.frozen import Frozen
from warpfold.contract.unions import said_as
from warpfold.kernels.catalog import ROLLING_IN_WORDS, WINDOWS, check_rolling, check_rolling_on
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import AlongAxes, Grouping
from warpfold.kernels.parts.rolling import SECONDS, Closed, Rolling, Window

Width = Annotated[str, StringConstraints(pattern=rf"^[0-9]{{1,18}}(\.[0-9]{{1,9}})?({'|'.join(SECONDS)})$")]


WidthField = Annotated[
    Annotated[StrictInt, Field(ge=1, le=(1 << 63) - 1)] | Width | None,
    said_as(f"Should be a positive number of units, or a duration such as 1.5h with one of {', '.join(SECONDS)}"),
]


class WindowSpec(Frozen):
    """A window that moves along the elements and gives each of them a value. Give `rows`, `width` or `expanding`."""

    rows: int | None = Field(
        None,
        ge=1,
        le=MAX_ELEMENTS,
        strict=True,
        exclude_if=lambda rows: rows is None,
        description="How many elements the window has: each one and those before it.",
    )
    width: WidthField = Field(
        None,
        exclude_if=lambda width: width is None,
        description="How far back a window reaches in `over`: a number of its units or, where it has times, a duration "
        f"such as 90s or 1.5h, with one of the units {', '.join(SECONDS)}. Elements at the same time are in together.",
    )
    closed: Closed = Field(
        Closed.RIGHT,
        exclude_if=lambda closed: closed is Closed.RIGHT,
        description="Which ends of a `width` belong to the window: of (t − width, t] the right one, which is at each "
        "element's own time.",
    )
    expanding: StrictBool = Field(
        False,
        exclude_if=lambda expanding: not expanding,
        description="Whether the window has each element and all before it, so that a sum is a running sum.",
    )
    centre: StrictBool = Field(
        False,
        exclude_if=lambda centre: not centre,
        description="Whether the element stands in the middle of the `rows`; of an even number, one more stands before "
        "it than behind it.",
    )
    min_count: int | None = Field(
        None,
        ge=0,
        le=MAX_ELEMENTS,
        strict=True,
        exclude_if=lambda count: count is None,
        description="The least number of elements for a value: a window of fewer has a null. By default it is `rows`, "
        "and 1 for other windows. NaNs that are left out do not count.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.rows is not None) + (self.width is not None) + self.expanding != 1:
            raise InvalidInput("a window needs one of rows, width and expanding", "window")
        if self.closed is not Closed.RIGHT and self.width is None:
            raise InvalidInput("only a window of some width has ends that are closed or not", "window.closed")
        if self.centre and self.rows is None:
            raise InvalidInput("only a window of rows has a centre", "window.centre")
        if self.rows is not None and self.min_count is not None and self.min_count > self.rows:
            raise InvalidInput(f"a window of {self.rows:,} rows never has more elements", "window.min_count")
        return self

    def within(self, lines: Grouping | None) -> Rolling:
        """The grouping of windows that do not leave these lines. Raises InvalidInput naming "axis" or "keepdims"."""
        least = (self.rows or 1) if self.min_count is None else self.min_count
        if isinstance(lines, AlongAxes) and lines.keepdims:
            raise InvalidInput("a window keeps all axes in any case", "keepdims")
        if isinstance(lines, AlongAxes) and (lines.axes is None or len(lines.axes) != 1):
            raise InvalidInput("a window moves along one axis", "axis")
        return Rolling(Window(self.rows, self.centre, least, self.width, self.closed), lines)


WindowField = Annotated[
    WindowSpec | None,
    Field(
        exclude_if=lambda window: window is None,
        description="A window that moves along the elements, along an `axis` or within `segments`; the result has a "
        f"value for each element. Windows have {ROLLING_IN_WORDS}; auto takes a CPU slot.",
    ),
]


def check_windows(op: Op, backend: str, options: Mapping[str, bool]) -> None:
    """Raise InvalidInput naming "op", "backend", or the first of the `options` that a request has, which windows do not
    take."""
    check_rolling(op)
    check_rolling_on(op, backend)
    for field, wanted in options.items():
        if wanted:
            raise InvalidInput(f"{WINDOWS} do not take it so far", field)


def window_in_words(stored: Any) -> str:
    """The window of a stored spec in words."""
    match stored:
        case {"rows": int(rows), "centre": True}:
            return f"windows of {rows:,} in the middle"
        case {"rows": int(rows)}:
            return f"windows of {rows:,}"
        case {"width": int(width)} | {"width": str(width)}:
            return f"windows of the width {width}"
        case {"expanding": True}:
            return "expanding windows"
    return ""
