"""`warpfold.engines.torch` by its public name."""

from warpfold.engines.torch import *  # noqa: F403
