"""The metrics that Prometheus reads at `/metrics`.

Each api process counts its own requests, so every process is a target of its own. All other metrics are read from
Postgres when they are asked for: they are the same whichever process answers, and outlive all processes.
"""
