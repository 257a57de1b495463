"""Arrays and columns that a request cannot carry, and a file can."""

from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ArrayAsFile:
    """An array of any shape of NumPy's times or of complex numbers, which goes up as a .npy file."""

    array: "NDArray[Any]"


@dataclass(frozen=True, slots=True)
class ColumnAsFile:
    """A column of timestamps, dates, durations or decimals with its nulls, as a table of pyarrow that has this column
    alone, which goes up as an Arrow file."""

    table: Any

    def write(self, file: IO[bytes]) -> None:
        """Write the Arrow file."""
        from pyarrow import ipc

        with ipc.new_file(file, self.table.schema) as writer:
            writer.write_table(self.table)

    def to_bytes(self) -> memoryview:
        """The Arrow file."""
        file = BytesIO()
        self.write(file)
        return file.getbuffer()


AsFile = ArrayAsFile | ColumnAsFile


def is_complex(data: object) -> bool:
    """Whether these are complex numbers."""
    return isinstance(data, ArrayAsFile) and data.array.dtype.kind == "c"
