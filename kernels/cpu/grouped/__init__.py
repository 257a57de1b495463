"""Reductions to many values: along axes, and by segments. `reducing` runs them, in the folds of the other files."""
