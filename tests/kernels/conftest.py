"""How hypothesis runs here: the same examples every time, and no deadline, as a first example may compile."""

from hypothesis import settings

settings.register_profile("kernels", deadline=None, derandomize=True, database=None)
settings.load_profile("kernels")
