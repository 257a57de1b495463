"""`warpfold.engines.flox` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("flox"):
    from warpfold.engines.flox import *  # noqa: F403
