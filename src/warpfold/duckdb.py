"""`warpfold.engines.duckdb` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("duckdb"):
    from warpfold.engines.duckdb import *  # noqa: F403
