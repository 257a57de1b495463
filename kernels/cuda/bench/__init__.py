"""A GPU as something to measure: its clocks behind a blocked stream, its conditions, its memory."""
