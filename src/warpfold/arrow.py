"""`warpfold.engines.arrow` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("duckdb", "pandas", "polars", "datafusion"):
    from warpfold.engines.arrow import *  # noqa: F403
