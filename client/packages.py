"""Which packages are there besides the base installation's."""

from importlib.util import find_spec


def installed(name: str) -> bool:
    """Whether the package can be imported; it is not imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
