"""Reductions by key on a CPU. `keys` numbers the groups, and `reducing` adds columns to the groups by the folds of the
other modules."""
