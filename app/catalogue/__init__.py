"""What can be asked for (ops, dtypes, distributions, strategies), and who is there to do it (workers, devices)."""
