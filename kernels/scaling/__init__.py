"""How a sum scales: over the GPUs of a machine, or over processes where there are none."""
