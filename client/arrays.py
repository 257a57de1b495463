"""Arrays of every library as NumPy arrays: through what they offer to each other, so that none of them is imported."""

import sys
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, dtype_named, dtype_of
from warpfold.kernels.narrow import narrowed


def as_numpy(data: object, dtype: str | None = None) -> NDArray[Any]:
    """`data` as a NumPy array of a dtype that Warpfold reduces, copied only where it must be.

    Takes NumPy arrays and scalars, lists of numbers, columns of pandas and Polars (`to_numpy`), and arrays of CuPy,
    PyTorch, JAX and others on any device (`__array_interface__`, `__dlpack__`). With `dtype` the elements are
    converted to it as NumPy does, to bfloat16 as float64 rounded once. Raises TypeError for what is no array of
    numbers.
    """
    array = _found(data)
    if dtype is None:
        _check_integers(data, array)
    else:
        to = dtype_named(dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large becomes infinite
            if to.name == "bfloat16" and array.dtype != to.numpy:  # ml_dtypes rounds twice, by way of float32
                return narrowed(array.astype(np.float64), to)
            return np.asarray(array, dtype=to.numpy)
    try:
        dtype_of(array.dtype)
    except ValueError:
        known = ", ".join(DTYPES)
        raise TypeError(f"a {type(data).__name__} of {array.dtype} cannot be reduced; known dtypes: {known}") from None
    return array


def _check_integers(data: object, array: NDArray[Any]) -> None:
    """Integers of a list that fit into no integer dtype together: NumPy takes the nearest floats, and says nothing."""
    if isinstance(data, list | tuple) and array.dtype.kind == "f":
        for said, kept in zip(np.asarray(data, dtype=object).flat, array.flat, strict=True):
            if isinstance(said, int) and said != int(kept):
                raise TypeError(
                    f"{said} is no float64, and no integer dtype holds the whole list; say which dtype to take"
                )


def _found(data: object) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):  # NumPy would reduce what the mask hides
        raise TypeError("a masked array is reduced as its `.compressed()` elements, or `.filled(value)`: say which")
    if isinstance(data, np.ndarray | np.generic | list | tuple | range | int | float):
        return np.atleast_1d(np.asarray(data))
    offered = _offered(data)
    if offered is None:
        raise TypeError(f"a {type(data).__name__} is no array: it offers none of the array protocols")
    return np.atleast_1d(np.asarray(offered))


def _offered(data: Any) -> object:
    """What NumPy can take of `data`, on the host; None for nothing."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.Tensor):
        return _of_torch(torch, data)
    if hasattr(data, "__cuda_array_interface__"):
        # CuPy and Numba; others move their data by DLPack.
        move = getattr(data, "get", None) or getattr(data, "copy_to_host", None)
        if move is not None:
            return move()
    if hasattr(data, "to_numpy"):
        return _of_column(data)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return data
    # `device="cpu"` has the producer copy what is elsewhere.
    return np.from_dlpack(data, device="cpu") if hasattr(data, "__dlpack__") else None


def _of_column(data: Any) -> object:
    array = data.to_numpy()
    # Columns write a null among integers as NaN among floats, which do not hold all of the integers.
    own = str(getattr(data, "dtype", "")).lower()
    if own.startswith(("int", "uint")) and array.dtype.kind == "f":
        raise TypeError(f"a column of {own} with nulls is reduced without them, or with a value for them: say which")
    return array


def _of_torch(torch: Any, data: Any) -> NDArray[Any]:
    tensor = data.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:  # NumPy has no name for it
        bits: NDArray[Any] = tensor.view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: NDArray[Any] = tensor.numpy()
    return array
