"""`warpfold.engines.dask` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("engines"):
    from warpfold.engines.dask import *  # noqa: F403
