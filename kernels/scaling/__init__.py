"""Scaling studies: how a sum scales over the GPUs of a machine, or over the cores of a CPU."""
