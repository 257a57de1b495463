"""Traces of a job from the request that brought it to the kernel that ran, where a collector is configured."""
