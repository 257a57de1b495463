"""Tells which optional packages are installed besides the base installation."""

from importlib.util import find_spec


def installed(name: str) -> bool:
    """Whether the package can be imported; it is not imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
