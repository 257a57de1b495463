"""A GPU and what runs on it: kernels, launches that are recorded, facts, errors and device time."""
