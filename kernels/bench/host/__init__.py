"""A CPU as something to measure: its clock, its conditions, its memory."""

from kernels.bench.host.rig import HostRig

__all__ = ["HostRig"]
