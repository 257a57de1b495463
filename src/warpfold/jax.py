"""`warpfold.engines.jax` by its public name."""

from warpfold.engines.jax import *  # noqa: F403
