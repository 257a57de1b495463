"""Arrays whose variances are hard to finish."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HARD = ("far", "alike", "small integers", "integers", "wide", "zeros")


def hard(kind: str, size: int, dtype: str, random: np.random.Generator) -> Array:
    """Elements that are hard to finish: far from 0, all alike, of ties, of powers far apart."""
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
        case "wide":
            made = random.standard_normal(size) * 2.0 ** random.integers(-60, 60, size)
        case _:
            made = np.where(random.random(size) < 0.9, 0, random.standard_normal(size))
    return np.asarray(made).astype(dtype)
