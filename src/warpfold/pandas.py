"""`warpfold.engines.pandas` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("pandas"):
    from warpfold.engines.pandas import *  # noqa: F403
