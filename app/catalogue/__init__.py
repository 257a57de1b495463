"""The names that a spec may use (ops, dtypes, distributions, strategies), and the workers and devices that run jobs."""
