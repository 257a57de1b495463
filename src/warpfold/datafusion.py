"""`warpfold.engines.datafusion` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("datafusion"):
    from warpfold.engines.datafusion import *  # noqa: F403
