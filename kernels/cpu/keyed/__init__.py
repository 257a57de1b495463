"""Reductions by key on a CPU: `keys` numbers the groups, `reducing` adds columns to them by the folds of the others."""
