"""Reductions to many values: along axes, and by segments. `reducing` runs them; the other modules are its folds."""
