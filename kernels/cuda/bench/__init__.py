"""A GPU as a benchmark target: its clocks behind a blocked stream, its conditions, its memory."""
