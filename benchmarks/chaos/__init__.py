"""Mixed work of several users while processes of the service are killed and stopped: `python -m benchmarks.chaos`."""
