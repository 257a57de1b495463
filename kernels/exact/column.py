"""Exact states in a column: the canonical bytes of many states, one behind another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.exact.encoding import DIGIT_BITS, HEADER, TERMS, Flags, StateError
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.machine.extras import required


@dataclass(frozen=True, slots=True)
class StateColumn:
    """State i is the bytes offsets[i] … offsets[i + 1] − 1 of `data`: uint8, and int64 of shape (states + 1,)."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, at: int) -> bytes:
        return self.data[self.offsets[at] : self.offsets[at + 1]].tobytes()

    def state(self, at: int) -> ExactState:
        """State `at`, as `states` makes it."""
        return _state(self[at], 0, int(self.offsets[at + 1] - self.offsets[at]))

    def states(self) -> list[ExactState]:
        """All states, of bytes that a backend of this process wrote: nobody looks whether they are canonical."""
        data = self.data.tobytes()
        return [_state(data, start, stop) for start, stop in pairwise(self.offsets.tolist())]

    @property
    def nbytes(self) -> int:
        """The size of the bytes and the offsets."""
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes

    @classmethod
    def beside(cls, parts: "Sequence[StateColumn]") -> "StateColumn":
        """The states of all parts, part after part."""
        starts = np.cumsum([0, *(int(part.offsets[-1]) for part in parts)])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
        return cls(
            np.concatenate([part.data[: part.offsets[-1]] for part in parts] or [np.zeros(0, np.uint8)]),
            np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        )

    @classmethod
    def of_bytes(cls, states: "Sequence[bytes]") -> "StateColumn":
        """The states that have these bytes."""
        offsets = np.cumsum([0, *map(len, states)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(states), np.uint8), offsets)

    @classmethod
    def of_arrow(cls, array: Any) -> "StateColumn":
        """The states in an array of pyarrow, of bytes without a null. Raises StateError where its offsets lie outside
        of its bytes, as those of a damaged file may: compiled code reads the states."""
        pyarrow = required("pyarrow", "tables")
        try:
            array.validate(full=True)
        except pyarrow.ArrowInvalid as error:
            raise StateError("length", f"the column is damaged: {str(error).splitlines()[0][:200]}") from None
        if not len(array):  # an array without elements may have no offsets
            return cls(np.zeros(0, np.uint8), np.zeros(1, np.int64))
        array = array.cast(pyarrow.large_binary())
        # A file may have more bytes behind the last offset, of any number.
        offsets = np.frombuffer(array.buffers()[1], np.int64, array.offset + len(array) + 1)[array.offset :]
        data = array.buffers()[2]
        return cls(np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), offsets)

    def array(self) -> Any:
        """The states as an array of pyarrow, of type `large_binary`: a table of them may pass 2 GiB."""
        pyarrow = required("pyarrow", "tables")
        buffers = [None, pyarrow.py_buffer(self.offsets), pyarrow.py_buffer(self.data)]
        return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(self), buffers)

    def taken(self, order: NDArray[np.int64]) -> "StateColumn":
        """The same states in this order."""
        lengths = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][order] - offsets[:-1], lengths)
        return StateColumn(self.data[places], offsets)


def _state(data: bytes, start: int, stop: int) -> ExactState:
    """The state whose canonical bytes are data[start:stop]."""
    _, _, code, flags, _, count, first, _, _ = HEADER.unpack_from(data, start)
    units = int.from_bytes(data[start + HEADER.size : stop], "little", signed=True) << (DIGIT_BITS * first)
    return ExactState(TERMS[code], units, count, Flags(flags))
