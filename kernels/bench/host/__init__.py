"""A CPU as something to measure: its clock, its conditions, its memory."""

from warpfold.kernels.bench.host.rig import HostRig

__all__ = ["HostRig"]
