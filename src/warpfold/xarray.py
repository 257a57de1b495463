"""`warpfold.engines.xarray` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("engines"):
    from warpfold.engines.xarray import *  # noqa: F403
