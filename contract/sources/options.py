"""What a source of files takes of a file, in fields that several sources share, and how their faults are told."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self

from numpy.typing import NDArray
from pydantic import Field, StrictBool, StrictInt, StringConstraints

from warpfold.contract.fields import said_as
from warpfold.contract.frozen import Frozen
from warpfold.contract.sources.roots import open_regular, reason_of
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.formats.arrays import open_array_file
from warpfold.kernels.formats.conventions import Conventions
from warpfold.kernels.formats.hyperslab import Range
from warpfold.kernels.sequential import Elements, SequentialSource

MOST_AXES = 64
Index = Annotated[StrictInt, Field(ge=-(1 << 62), le=1 << 62)]
InFile = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")]
NullPolicy = Literal["omit", "raise"]


class AxisRange(Frozen):
    """Indices start, start + step, … below `stop` of an axis, as `start:stop:step` in NumPy; an index beyond the axis
    is an error."""

    start: Index = Field(0, description="The first index; a negative one counts from the end.")
    stop: Index | None = Field(None, description="The index after the last; the axis's end if it is left out.")
    step: Annotated[StrictInt, Field(ge=1, le=1 << 62)] = Field(1, description="From one index to the next.")


Selected = Annotated[
    Annotated[
        AxisRange | Index | None, said_as('Should be an index, an object such as {"start": 0, "stop": 10}, or null')
    ],
    Field(description="An index, a range of indices, or null for the whole axis."),
]


class ArrayOptions(Frozen):
    """Which elements of which array in a file are reduced."""

    array: InFile | None = Field(
        None,
        description="Name of the array in the file: a member of an .npz archive, or the path of a dataset in an HDF5, "
        "NetCDF-4 or Zarr hierarchy. It may be left out where the file has one array.",
    )
    select: tuple[Selected, ...] = Field(
        (),
        max_length=MOST_AXES,
        description="What to take of each axis, beginning with the first: an index, a range, or null for all of it. "
        "Axes that are not named are taken whole.",
    )
    stored: StrictBool = Field(
        False,
        description="Reduce elements as they are stored, whatever the attributes `_FillValue`, `missing_value`, "
        "`scale_factor` and `add_offset` say of them. Otherwise missing values are nulls, and packed arrays are "
        "refused.",
    )
    null_policy: NullPolicy = Field(
        "omit", description="What to do with nulls: leave them out, in which case the result counts them, or fail."
    )

    def refusing_nulls(self) -> Self:
        return self.model_copy(update={"null_policy": "raise"})

    def ranges(self) -> tuple[Range, ...]:
        """`select` as the formats take it."""
        return tuple(_range(axis) for axis in self.select)

    def described(self) -> str:
        """The options that are not left at their defaults, in words that follow a file's name."""
        given = self.model_dump(exclude_defaults=True, include=set(ArrayOptions.model_fields))
        return "".join(f", {name} {value}" for name, value in given.items())

    def open_in(self, file: BinaryIO) -> Elements:
        """The elements in `file`, which must stay open while they are read. Raises InvalidInput and Unavailable."""
        conventions = Conventions(self.stored, self.null_policy == "raise")
        return open_array_file(file, self.array, self.ranges(), conventions)


def _range(axis: AxisRange | int | None) -> Range:
    if axis is None:
        return Range()
    if isinstance(axis, int):
        return Range(axis, None if axis == -1 else axis + 1)
    return Range(axis.start, axis.stop, axis.step)


def open_file(name: str, roots: Sequence[Path], field: str, open_in: Callable[[BinaryIO], Elements]) -> Elements:
    """What `open_in` reads of the regular file `name`, which is closed when it is not needed any more. Raises
    InvalidInput, with the name, and Unavailable; so does reading."""
    with faults_of(name, field):
        file = open_regular(name, roots, field)
        try:
            source = open_in(file)
        except BaseException:
            file.close()
            raise
    if not isinstance(source, SequentialSource):
        file.close()  # it has descriptors of its own
        return source
    make = source.make

    def pieces() -> Iterator[NDArray[Any]]:
        with faults_of(name, field):
            yield from make()

    sequential = replace(source, make=pieces)
    weakref.finalize(sequential, file.close)
    return sequential


@contextmanager
def faults_of(name: str, field: str) -> Iterator[None]:
    """Tell the faults of a file with its name, and those of options with the field of the source that has them."""
    try:
        yield
    except InvalidInput as error:
        if str(error).startswith(repr(name)):
            raise
        raise InvalidInput(f"{name!r} {error}", f"source.{error.field}" if error.field else field) from None
    except Unavailable as error:
        raise Unavailable(f"{name!r} cannot be read: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {reason_of(error)}", field) from None
