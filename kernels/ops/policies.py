"""What to do with elements that are no numbers."""

from enum import StrEnum


class NanPolicy(StrEnum):
    """What to do with NaN elements of float data."""

    PROPAGATE = "propagate"  # as NumPy does: NaN in, NaN out; argmin/argmax give the first NaN's index
    OMIT = "omit"  # leave them out; the result's count does not count them
    RAISE = "raise"  # fail with invalid_input


class NullPolicy(StrEnum):
    """What to do with nulls, in whose place a file has no value. NaN is a value."""

    OMIT = "omit"  # leave them out; the result counts them
    RAISE = "raise"  # fail with invalid_input
    PROPAGATE = "propagate"  # a value of elements with a null among them is null
