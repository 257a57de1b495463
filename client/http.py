"""httpx, without its command line. httpx imports that with itself wherever click and Rich are installed, as here, and
it takes twice as long as all the rest. A module that stands as None in `sys.modules` cannot be imported, and httpx
goes on without it.
"""

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
_COMMAND_LINE = "httpx._main"

if _COMMAND_LINE in _modules:
    import httpx
else:
    _modules[_COMMAND_LINE] = None
    try:
        import httpx
    finally:
        del _modules[_COMMAND_LINE]

__all__ = ["httpx"]
