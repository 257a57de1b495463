"""`warpfold serve`: the whole service on one machine, from servers to slots, kept alive."""
