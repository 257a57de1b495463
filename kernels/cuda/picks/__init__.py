"""Elements that are picked on a GPU, and counts of bins."""
