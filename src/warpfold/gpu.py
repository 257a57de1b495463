"""`warpfold.engines.gpu` by its public name."""

from warpfold.engines.gpu import *  # noqa: F403
