"""The work of a slot's child: it runs specs on the one device that it holds open, and returns their results."""

import hashlib
import json
import platform
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.faults import first_fault
from warpfold.contract.folders import Folders
from warpfold.contract.needs import DASK
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.tasks import TaskSpec, stored_task
from warpfold.kernels.backend import GANG
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.machine.extras import install
from warpfold.kernels.machine.preparation import of_process
from warpfold.kernels.open import open_backend
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.kinds import runs
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Tell, Timed, Warming
from warpfold.worker.rates import SlotRates
from warpfold.worker.second_look import look_again


@dataclass(frozen=True, slots=True)
class Origin:
    """The fields that are the same in the provenance of all results of this child."""

    worker: str
    host: str
    warpfold: str
    commit: str | None


class Kernels:
    """An open backend that runs specs. Opening it may take seconds, and raises Unavailable if there is no such
    device."""

    def __init__(
        self,
        slot: str,
        worker: str,
        folders: Folders,
        *,
        cpu_cache_bytes: int | None = None,
        rates_dir: Path | None = None,
        cluster: ClusterOptions | None = None,
    ) -> None:
        """Open the backend of `slot`. `rates_dir` is the folder in which the rates of the slot are kept; with None no
        rates are measured. `cluster` is for the slot `dask`."""
        self._backend = _opened(slot, cpu_cache_bytes, cluster)
        self._runs = runs()
        self._folders = folders
        self._device = DeviceView.of(self._backend.device)
        self._origin = Origin(worker, socket.gethostname(), version("warpfold"), _commit())
        self._rates = SlotRates(None if slot in (GANG, DASK) else rates_dir, self._device, self._origin.warpfold)

    @property
    def device(self) -> Mapping[str, object]:
        return self._device.model_dump(mode="json")

    @property
    def rates(self) -> Mapping[str, object] | None:
        return self._rates.reported

    def warm(self) -> None:
        if isinstance(self._backend, Warming):
            self._backend.warm()

    def measuring(self) -> Iterator[None]:
        return self._rates.measuring(self._backend)

    def close(self) -> None:
        """Close the backend. A child need not call this, because its device is closed with its process."""
        self._backend.close()

    def run(self, lease: Lease, tell: Tell) -> Success:
        """Run one attempt. Raises a KernelError where the job cannot be done."""
        started, prepared_ms = time.perf_counter(), of_process().total_ms
        try:
            spec = stored_task(lease.spec)
        except ValidationError as error:
            raise InvalidInput(f"this version cannot read the job's spec: {first_fault(error)}") from None
        if spec.timed:
            tell(Timed())
        attempt = Attempt(
            lease=lease,
            kind=spec.kind,
            backend=self._backend,
            device=self._device,
            provenance=self._provenance(spec, lease),
            folders=self._folders,
            tell=tell,
            started=started,
            prepared_ms=prepared_ms,
        )
        try:
            with self._datasets_at_hand(attempt, spec):
                if lease.child_died:
                    look_again(spec, lease.spec, self._folders)
                success = self._runs[spec.kind](attempt, spec)
        finally:
            self._backend.job_over()
        if not spec.small():
            self._rates.learn(spec, success.result)
        return success

    def _datasets_at_hand(self, attempt: Attempt, spec: TaskSpec) -> AbstractContextManager[None]:
        """Within the block, this machine has the uploaded arrays that the job needs. Missing ones are fetched where
        apis are configured."""
        if self._folders.cache is None:
            return nullcontext()
        # Imported here, because few services need an HTTP client in the child.
        from warpfold.worker.fetching import at_hand

        needed = [dataset_id for _, source in spec.sources() for dataset_id in source.dataset_ids]
        return at_hand(self._folders, needed, attempt.progress)

    def _provenance(self, spec: TaskSpec, lease: Lease) -> Provenance:
        return Provenance(
            warpfold=self._origin.warpfold,
            commit=self._origin.commit,
            python=platform.python_version(),
            libraries=self._device.versions,
            host=self._origin.host,
            worker=self._origin.worker,
            attempt=lease.attempt,
            spec_sha256=_digest(lease.spec),
            seed=spec.data_seed(),
        )


def _opened(slot: str, cpu_cache_bytes: int | None, cluster: ClusterOptions | None) -> Backend:
    if slot != DASK:
        return open_backend(slot, cpu_cache_bytes=cpu_cache_bytes)
    try:
        from warpfold.worker.dask.cluster import Cluster
    except ImportError as error:
        raise Unavailable(f"a slot dask needs the package {error.name}; {install('cluster')}") from None
    return Cluster(cluster or ClusterOptions())


_LIST = '"values":['  # this matches nothing within a string, because quotes in a JSON string are escaped
_WRITTEN_ALIKE = b"-0123456789.,"


def _digest(spec: str) -> str:
    """SHA-256 of the spec's JSON with sorted names and no spaces.

    A stored spec has numbers without an exponent as Python writes them, except those below 0.0001. Lists of them go
    into the digest as they stand: reading and writing them again would take longer than adding them up.
    """
    as_written: list[str] = []
    rest: list[str] = []
    end = 0
    while (begin := spec.find(_LIST, end)) >= 0:
        begin += len(_LIST)
        rest.append(spec[end:begin])
        end = spec.find("]", begin)
        numbers = spec[begin:end]
        if numbers and "0.0000" not in numbers and not numbers.encode().translate(None, _WRITTEN_ALIKE):
            rest.append(f'"#{len(as_written)}"')  # a placeholder that no list of numbers holds
            as_written.append(numbers)
        else:
            rest.append(numbers)
    rest.append(spec[end:])
    canonical = json.dumps(json.loads("".join(rest)), sort_keys=True, separators=(",", ":"))
    for place, numbers in enumerate(as_written):
        canonical = canonical.replace(f'"values":["#{place}"]', f'"values":[{numbers}]', 1)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _commit() -> str | None:
    """The commit that this source was checked out from; None in an installation."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        revision = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return revision.stdout.strip()
