"""Exact sums of the rows of an array of integers, compiled: in 32-bit digits, as `integers` has them."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.integers import (
    add_magnitudes,
    add_products,
    add_signed,
    add_signed_squares,
    add_unsigned,
    add_unsigned_squares,
)
from warpfold.kernels.jit import jit

DIGITS = 8
"""Digits of a sum: 2**64 products of 2**128 need 192 bits and a sign."""

VALUES, MAGNITUDES, SQUARES = 0, 1, 2
"""The terms that are added up."""


@jit
def _carry(digits: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """digits += a + b · 2**32 + c · 2**64 + d · 2**96, each below 2**62 in magnitude; all digits but the last end in
    0 … 2**32 − 1."""
    digits[0] += np.int64(a)
    digits[1] += np.int64(b)
    digits[2] += np.int64(c)
    digits[3] += np.int64(d)
    for k in range(digits.size - 1):
        digits[k + 1] += digits[k] >> 32
        digits[k] &= np.int64(0xFFFFFFFF)


@jit
def add_integer_rows(flat: Any, edges: Any, outputs: Any, what: Any, signed: Any, sums: Any) -> None:
    """sums[outputs[r]] += Σ of the elements of `flat` from edges[r] to edges[r + 1], of their magnitudes or of their
    squares. `sums` (int64) has the shape (values, DIGITS); a row has at most `integers.MAX_ELEMENTS` elements."""
    for r in range(outputs.size):
        row, digits = flat[edges[r] : edges[r + 1]], sums[outputs[r]]
        if what == SQUARES:
            e, f, g, h = add_signed_squares(row) if signed else add_unsigned_squares(row)
            _carry(digits, e, f, g, h)
        elif not signed:
            low, middle = add_unsigned(row)
            _carry(digits, low, middle, 0, 0)
        elif what == MAGNITUDES:
            low, middle = add_magnitudes(row)
            _carry(digits, low, middle, 0, 0)
        else:
            below, above = add_signed(row)
            _carry(digits, below, above, 0, 0)


@jit
def add_integer_products(x: Any, y: Any, edges: Any, outputs: Any, x_signed: Any, y_signed: Any, sums: Any) -> None:
    """Do what `add_integer_rows` does for the products of 64-bit patterns (int64), as `integers.add_products` does."""
    for r in range(outputs.size):
        a, b, c, d = add_products(x[edges[r] : edges[r + 1]], y[edges[r] : edges[r + 1]], x_signed, y_signed)
        _carry(sums[outputs[r]], a, b, c, d)
