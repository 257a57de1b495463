"""What Prometheus reads at `/metrics`.

Requests are counted by each api process for itself, so every process is a target of its own. All the rest is read from
Postgres when asked for: it is the same whichever process answers, and outlives all of them.
"""
