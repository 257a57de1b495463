"""How to install the packages that a part of Warpfold needs. Warpfold is in no package index, and anybody could take
its name there, so extras are installed from a clone."""


def install(*extras: str) -> str:
    """What to type for one of the `extras` of pyproject.toml: "`pip install '.[server]'` in a clone of Warpfold"."""
    return " or ".join(f"`pip install '.[{extra}]'`" for extra in extras) + " in a clone of Warpfold"
