"""`warpfold.engines.polars` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("polars"):
    from warpfold.engines.polars import *  # noqa: F403
