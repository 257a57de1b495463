"""A GPU and what runs on it: kernels, recorded launches, properties, errors and device time."""
