"""`warpfold.engines.postgres` by its public name."""

from warpfold.engines.postgres import *  # noqa: F403
