"""`warpfold.engines.jax` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("engines", besides="jax"):
    from warpfold.engines.jax import *  # noqa: F403
