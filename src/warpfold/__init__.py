"""Exact reductions and reduction benchmarks: the Python client, and the exact states that it merges.

`import warpfold` is the public import. The server's packages stand below this name too (`warpfold.app`,
`warpfold.worker`, `warpfold.kernels`), so that no file of a user's folder can take their place.

A name is imported when it is first asked for: a worker that needs `warpfold.kernels` does not load an HTTP client.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpfold.client import *  # noqa: F403 - the list of public names is that of the client


_ENGINES = (
    "arrow",
    "dask",
    "datafusion",
    "duckdb",
    "flox",
    "gpu",
    "jax",
    "pandas",
    "polars",
    "postgres",
    "torch",
    "xarray",
)


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ENGINES or find_spec(f"{__name__}.{name}") is not None:  # `from warpfold import migrations`, too
        return import_module(f"{__name__}.{name}")
    return _public(name)


def _public(name: str) -> object:
    client = import_module("warpfold.client")
    names: list[str] = client.__all__
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(client, name)


def __dir__() -> list[str]:
    names: list[str] = import_module("warpfold.client").__all__
    return sorted([*globals(), *names, *_ENGINES])
