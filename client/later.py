"""Modules that are imported when a name of theirs is first asked for, so that a short command does not wait for what it
does not use. Python's own `importlib.util.LazyLoader` is not safe for threads before 3.12, and threads share a client.
"""

from importlib import import_module
from typing import Any


class Later:
    """The module called `name`, once it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
