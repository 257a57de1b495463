"""Arrays whose variances are hard to finish."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HARD = ("far", "alike", "small integers", "integers", "wide", "zeros", "next to ties", "pairs")


def hard(kind: str, size: int, dtype: str, random: np.random.Generator) -> Array:
    """Elements that are hard to finish: far from 0, all alike, of ties, of powers far apart, of
    squares that are ties but for small ones, and of two values that take turns."""
    made: Array
    match kind:
        case "far":
            made = 1e6 + random.standard_normal(size)
        case "alike":
            made = np.full(size, random.standard_normal())
        case "small integers":
            made = random.integers(-9, 9, size)
        case "integers":
            made = random.integers(0, 5000, size)
        case "next to ties":
            bits = {"float16": 5, "float32": 12, "float64": 26}[dtype]
            odd = random.integers(1 << bits - 1, int(2 ** (bits - 0.5)), size) * 2 + 1
            made = np.where(random.random(size) < 0.4, odd, random.choice([0, 2.0**-30, 2.0**-100, 2.0**-140], size))
        case "pairs":
            made = np.resize(random.standard_normal(2), size)
        case "wide":
            made = random.standard_normal(size) * 2.0 ** random.integers(-60, 60, size)
        case _:
            made = np.where(random.random(size) < 0.9, 0, random.standard_normal(size))
    return np.asarray(made).astype(dtype)
