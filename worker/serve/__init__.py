"""`warpfold serve` runs the whole service on one machine, from its servers to its slots, and keeps it alive."""
