"""Where the files lie that jobs read, and those that they write. Light: it travels from the parent of a slot to its
child."""

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from warpfold.kernels.places.place import NOWHERE, Places


@dataclass(frozen=True, slots=True)
class ArtefactFolder:
    """The folder of stored results, how many bytes a result may have at most, and how many must stay free on the
    disk."""

    path: Path
    most_bytes: int
    keep_free_bytes: int


@dataclass(frozen=True, slots=True)
class DatasetCache:
    """The folder of uploaded arrays that this machine fetched, how many bytes they may have at most, and how many must
    stay free on the disk; the apis that have them, by their urls, and the token that the apis want to see."""

    path: Path
    most_bytes: int
    keep_free_bytes: int
    urls: tuple[str, ...]
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Folders:
    """Resolved folders: those of `path` sources, and that of uploaded arrays; the places beyond this machine; the
    folder of stored results, None where results cannot be stored; and the cache of uploaded arrays, None where no
    arrays are fetched."""

    roots: tuple[Path, ...]
    datasets: Path
    places: Places = NOWHERE
    artefacts: ArtefactFolder | None = None
    cache: DatasetCache | None = None

    def dataset(self, dataset_id: str) -> Path:
        """Where an uploaded array lies on this machine, if it is there."""
        shared = dataset_file(self.datasets, dataset_id)
        return shared if self.cache is None or shared.exists() else dataset_file(self.cache.path, dataset_id)


def dataset_in_words(dataset_id: str) -> str:
    """What people read where an uploaded array has no name: as much of its id as lists show."""
    return f"dataset {dataset_id[:12]}"


def dataset_file(datasets: Path, dataset_id: str) -> Path:
    """Where an uploaded array lies in the folder of uploaded arrays, if it is there."""
    return datasets / dataset_id[:2] / f"{dataset_id}.npy"


def incoming_artefact(folder: Path, job_id: UUID, attempt: int) -> Path:
    """The folder in which an attempt of a job writes the files of its result."""
    return folder / "incoming" / f"{job_id}-{attempt}"


def placed_artefact(folder: Path, job_id: UUID) -> Path | None:
    """The folder that the last attempt of a job stored, None if it stored nothing. (`app.artefacts.store` names it.)"""
    kept = [path for path in (folder / str(job_id)[:2]).glob(f"{job_id}-*") if path.name[37:].isdecimal()]
    return max(kept, key=lambda path: int(path.name[37:]), default=None)
