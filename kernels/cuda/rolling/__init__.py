"""Windows that move along an array, on a GPU."""
