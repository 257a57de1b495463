"""Where the files are that jobs may read. Light, for it travels from the parent of a slot to its child."""

from dataclasses import dataclass
from pathlib import Path

from warpfold.app.config import Settings


@dataclass(frozen=True, slots=True)
class Folders:
    """Resolved folders: those of `path` sources, and that of uploaded arrays."""

    roots: tuple[Path, ...]
    datasets: Path

    @classmethod
    def of(cls, settings: Settings) -> "Folders":
        return cls(settings.data_roots, settings.datasets_dir().expanduser().resolve())
