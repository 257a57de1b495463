"""`warpfold.engines.torch` by its public name."""

from warpfold.kernels.machine.extras import bringing

with bringing("gpu13", "gpu12", besides="torch"):
    from warpfold.engines.torch import *  # noqa: F403
