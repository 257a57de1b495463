"""Checks the folder of compiled functions, which decides how long the first job of a kind takes on a CPU slot."""

import re
from pathlib import Path

from warpfold.app.config import Settings
from warpfold.contract.wording import number_of
from warpfold.worker.doctor.finding import Finding, absent, well

_OF_A_STATE = re.compile(r"_[0-9a-f]{24}$")
"""How the name of a folder ends that is for one state of the sources (`kernels/machine/jit.py`)."""


def look_at_compiled(settings: Settings) -> Finding:
    """Where compiled functions are kept, how many bytes they have, and how many of them this version uses."""
    from numba import config

    from warpfold.kernels.machine.jit import folders_in_use

    folder = Path(getattr(config, "CACHE_DIR", "") or settings.data_dir / "cache" / "numba")
    if not folder.is_dir():
        return absent(
            "compiled loops", f"{folder} is made on the first start; the first job of each kind takes seconds"
        )
    sizes = {path: path.stat().st_size for path in folder.rglob("*.nbc")}
    used = folders_in_use()
    others = [path for path in sizes if _OF_A_STATE.search(path.parent.name) and path.parent.name not in used]
    current = len(sizes) - len(others)
    detail = (
        f"{folder}; {sum(sizes.values()) / 2**20:.1f} MiB, {number_of('function', current)} of this version and "
        f"{len(others)} of others"
    )
    if not current:
        return absent("compiled loops", f"{detail}; the first job of each kind takes seconds")
    return well("compiled loops", detail)
