"""A CPU as something to measure: its clock, its conditions, its memory."""

from warpfold.kernels.bench.host.target import HostTarget

__all__ = ["HostTarget"]
