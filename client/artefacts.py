"""Conversations about stored results. A result is downloaded piece by piece and checked by its SHA-256; after a broken
connection the download goes on where it stood."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

from warpfold.client import jobs
from warpfold.client.errors import Unreachable, WarpfoldError
from warpfold.client.exchange import Call, Steps, send
from warpfold.client.group_table import GroupTable
from warpfold.client.http import httpx
from warpfold.client.job_results import ReduceArrayResult, Result
from warpfold.client.models import Job
from warpfold.contract.artefact import Artefact, ArtefactPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

Format = Literal["npy", "arrow", "parquet", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Download:
    """The file that a download is written to, and the digest of the bytes written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._etag: str | None = None
        self.position = 0

    def headers(self) -> Mapping[str, str]:
        """The headers of a request that let the download go on where it stands."""
        if not self.position or self._etag is None:
            return {}
        return {"Range": f"bytes={self.position}-", "If-Range": self._etag}

    def begin(self, response: httpx.Response) -> None:
        """Note that an answer begins, with the missing bytes or with all bytes."""
        if response.status_code != httpx.codes.PARTIAL_CONTENT and self.position:
            self._file.seek(0)
            self._file.truncate()
            self._digest, self.position = hashlib.sha256(), 0
        etag = response.headers.get("ETag", "")
        self._etag = etag if etag.startswith('"') else None  # a weak tag promises no equal bytes

    def take(self, piece: bytes) -> None:
        """Write the bytes that came."""
        self._file.write(piece)
        self._digest.update(piece)
        self.position += len(piece)

    def check(self, sha256: str) -> None:
        """Raise Unreachable unless the downloaded bytes are exactly the stored ones."""
        if self._digest.hexdigest() != sha256:
            raise Unreachable("the downloaded bytes are not those of the stored result; download the result again")


def described(result: Result | None) -> Artefact | None:
    """The stored artefact of a result, or None."""
    return getattr(result, "artefact", None)


def format_of(path: Path, how: Format | None) -> Format | None:
    """The format to download: the one that is asked for, or that the name of the file ends in. Raises ValueError."""
    suffix = path.suffix.lower().removeprefix(".")
    known = next((known for known in FORMATS if known == suffix), None)
    if how is None and suffix and known is None:
        raise ValueError(
            f"the name of the file must end in one of {', '.join(FORMATS)}, or the call must give the format"
        )
    return how or known


def save(ended: Steps[Job], path: Path, how: Format | None) -> Steps[Path]:
    """Download the stored result of a job, once it has `ended`, into a file, which appears once it is whole. Raises
    JobFailed, WarpfoldError where nothing is stored, and OSError."""
    job = yield from ended
    artefact = described(jobs.result_of(job))
    if artefact is None:
        raise WarpfoldError(f"job {job.id} has stored no file: its result has all of its values")
    chosen = format_of(path, how)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            download = Download(file)
            yield from _download(artefact.href, {"format": chosen}, download)
            if chosen in (None, artefact.parts[0].format):
                download.check(artefact.parts[0].sha256)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)  # with the mode that a new file would have
        return Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def array(ended: Steps[Job]) -> "Steps[NDArray[Any]]":
    """All values of a reduction to an array, once its job has `ended`. Raises JobFailed, and TypeError for another
    result."""
    return (yield from array_of(jobs.array_result_of((yield from ended))))


def array_of(result: ReduceArrayResult) -> "Steps[NDArray[Any]]":
    """All values of a result as an array, downloaded if they are stored; see `ReduceArrayResult.to_numpy`."""
    artefact = result.artefact
    if artefact is None or result.values is not None:
        return result.to_numpy()
    return (yield from stored_array(artefact))


def stored_array(artefact: Artefact) -> "Steps[NDArray[Any]]":
    """The stored values of an array, masked where one is missing."""
    import numpy as np

    from warpfold.client.value_arrays import array_from
    from warpfold.kernels.ops import INTEGER

    values = yield from _part(artefact, artefact.parts[0])
    if values.dtype.kind == "S":
        plain = [int(text) if text else 0 for text in values.reshape(-1).tolist()]
        values = array_from(plain, artefact.shape, INTEGER)
    missing = artefact.part("missing")
    if missing is not None:
        mask = yield from _part(artefact, missing)
        return np.ma.masked_array(values, mask)
    return values


def groups_of(result: GroupTable) -> Steps[Any]:
    """The keys and the values of all groups as a table of pyarrow, downloaded if they are stored."""
    artefact = result.artefact
    if artefact is None:
        return result.to_arrow()
    from pyarrow import ipc

    with tempfile.TemporaryFile() as file:
        download = Download(file)
        yield from _download(artefact.href, {"part": artefact.parts[0].name}, download)
        download.check(artefact.parts[0].sha256)
        file.seek(0)
        return ipc.open_file(file).read_all()


def _part(artefact: Artefact, part: ArtefactPart) -> "Steps[NDArray[Any]]":
    from numpy.lib import format as npy

    with tempfile.TemporaryFile() as file:
        download = Download(file)
        yield from _download(artefact.href, {"part": part.name}, download)
        download.check(part.sha256)
        file.seek(0)
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        return array


def _download(href: str, parameters: Mapping[str, str | None], download: Download) -> Steps[None]:
    return send(Call("GET", href, lambda answer: None, parameters, receiver=download))


def delete(job_id: str) -> Steps[None]:
    """Delete the stored result of a job."""
    return send(Call("DELETE", f"/v1/jobs/{job_id}/artefact", lambda answer: None))
