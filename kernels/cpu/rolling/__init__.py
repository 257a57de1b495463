"""Values of windows that move along arrays. `reducing` makes them; the other modules are their sums and extremes."""
