"""Profiles: what kernels take of a GPU, and how well they use it."""
