"""Where the files lie that jobs may read. Light, for it travels from the parent of a slot to its child."""

from dataclasses import dataclass
from pathlib import Path

from warpfold.kernels.places.place import NOWHERE, Places


@dataclass(frozen=True, slots=True)
class Folders:
    """Resolved folders: those of `path` sources, and that of uploaded arrays; and the places beyond this machine."""

    roots: tuple[Path, ...]
    datasets: Path
    places: Places = NOWHERE


def dataset_file(datasets: Path, dataset_id: str) -> Path:
    """Where an uploaded array lies in the folder of uploaded arrays, if it is there."""
    return datasets / dataset_id[:2] / f"{dataset_id}.npy"
