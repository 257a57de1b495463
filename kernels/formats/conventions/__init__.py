"""Attributes by which an array says what its elements mean."""

from warpfold.kernels.formats.conventions.rules import Conventions, Missing

__all__ = ["Conventions", "Missing"]
