"""A GPU as a benchmark target: how times are taken behind a blocked stream, what disturbs them, and how fast memory
is."""
