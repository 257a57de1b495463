"""A CPU as a benchmark target: its clock, its conditions, its memory."""

from warpfold.kernels.bench.host.target import HostTarget

__all__ = ["HostTarget"]
