"""A drill of the service on several machines: network namespaces are the machines, and packets are late and get lost.

`python -m benchmarks.hosts` runs it whole; a test runs a short one.
"""
