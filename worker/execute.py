"""What the child of a real slot does: from a spec to a result, on the one device that it holds open."""

import base64
import hashlib
import json
import platform
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from warpfold.contract.folders import Folders
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.accuracy import AccuracySpec
from warpfold.contract.kinds.benchmark import BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.kinds.profile import ProfileSpec
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.contract.kinds.scaling import ScalingSpec
from warpfold.contract.kinds.three_numbers import ThreeNumbersSpec
from warpfold.contract.measurement import Measurement
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.tasks import TaskSpec, task_spec
from warpfold.contract.timings import Timings
from warpfold.kernels.backend import Reduction
from warpfold.kernels.bench import Flag
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.open import open_backend
from warpfold.worker.kinds.accuracy import add_three_numbers, compare
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.kinds.benchmark import measure
from warpfold.worker.kinds.cluster import solve_puzzle
from warpfold.worker.kinds.profile import profile_kernels
from warpfold.worker.kinds.scaling import measure_scaling
from warpfold.worker.messages import Progress, Request, Success, Tell


@dataclass(frozen=True, slots=True)
class Origin:
    """Where results of this child come from, as far as that is the same for all of them."""

    worker: str
    host: str
    warpfold: str
    commit: str | None


class Kernels:
    """An open backend that runs specs. Making one may take seconds; raises Unavailable if there is no such device."""

    def __init__(self, slot: str, worker: str, folders: Folders) -> None:
        self._backend = open_backend(slot)
        self._folders = folders
        self._device = DeviceView.of(self._backend.device)
        self._origin = Origin(worker, socket.gethostname(), version("warpfold"), _commit())

    @property
    def device(self) -> Mapping[str, object]:
        return self._device.model_dump(mode="json")

    def run(self, request: Request, tell: Tell) -> Success:
        """Run one attempt. Raises a KernelError where the job cannot be done."""
        started = time.perf_counter()
        try:
            spec = task_spec.validate_json(request.spec)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise InvalidInput(f"this version cannot read the job's spec: {first['msg']}") from None
        attempt = self._attempt(spec, request, started)
        match spec:
            case ReduceSpec():
                success = self._reduce(spec, request, tell, started)
            case BenchmarkSpec():
                success = measure(attempt, spec, request.done, tell)
            case ClusterSpec():
                success = solve_puzzle(attempt, spec)
            case AccuracySpec():
                success = compare(attempt, spec, request.done, tell)
            case ThreeNumbersSpec():
                success = add_three_numbers(attempt, spec)
            case ScalingSpec():
                success = measure_scaling(attempt, spec, tell)
            case ProfileSpec():
                success = profile_kernels(attempt, spec, tell)
        return success

    def _attempt(self, spec: TaskSpec, request: Request, started: float) -> Attempt:
        return Attempt(
            backend=self._backend,
            device=self._device,
            provenance=self._provenance(spec, request),
            queued_ms=request.queued_ms,
            elapsed_ms=lambda: (time.perf_counter() - started) * 1000,
        )

    def _reduce(self, spec: ReduceSpec, request: Request, tell: Tell, started: float) -> Success:
        source = spec.source.open(self._folders)
        other = None if spec.other is None else spec.other.open(self._folders)
        reduction = self._backend.reduce(
            source,
            spec.op,
            strategy=spec.strategy,
            nan_policy=spec.nan_policy,
            ddof=spec.ddof,
            other=other,
            progress=lambda done, total: tell(Progress(done, total, "elements")),
        )
        check_length(reduction.value)
        total_ms = (time.perf_counter() - started) * 1000
        result = ReduceResult(
            value=reduction.value,
            hex=hex_of(reduction.value),
            dtype=reduction.dtype,
            count=reduction.count,
            op=reduction.op,
            strategy=reduction.strategy,
            correctly_rounded=reduction.correctly_rounded,
            backend=self._device.backend,
            device=self._device,
            timings=Timings(
                queued_ms=request.queued_ms,
                prepare_ms=reduction.prepare_ms,
                load_ms=reduction.load_ms,
                kernel_ms=reduction.kernel_ms,
                total_ms=total_ms,
            ),
            provenance=self._provenance(spec, request),
            state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
        )
        read = sum(one.count * one.dtype.itemsize for one in (source, other) if one is not None)
        point = self._point(reduction, source.count, source.dtype.name, read)
        return Success(result.model_dump(mode="json"), (point,))

    def _point(self, reduction: Reduction, n: int, dtype: str, read: int) -> Measurement:
        return Measurement(
            kind="reduce",
            op=reduction.op,
            dtype=dtype,
            strategy=reduction.strategy,
            backend=self._device.backend,
            device=self._device.name[:128],
            n=n,
            bytes=read,
            samples=1,
            load_ms=reduction.load_ms,
            kernel_ms=reduction.kernel_ms,
            correctly_rounded=reduction.correctly_rounded,
            device_uuid=self._device.uuid,
            driver=self._device.versions.get("driver"),
            host=self._origin.host[:64],
            value=repr(reduction.value),
            prepare_ms=reduction.prepare_ms,
            flags=(Flag.FIRST_RUN.value,) if reduction.prepare_ms else (),
        )

    def _provenance(self, spec: TaskSpec, request: Request) -> Provenance:
        return Provenance(
            warpfold=self._origin.warpfold,
            commit=self._origin.commit,
            python=platform.python_version(),
            libraries=self._device.versions,
            host=self._origin.host,
            worker=self._origin.worker,
            attempt=request.attempt,
            spec_sha256=_digest(request.spec),
            seed=spec.data_seed(),
        )


def _digest(spec: str) -> str:
    """SHA-256 of the spec's JSON with sorted names and no spaces."""
    canonical = json.dumps(json.loads(spec), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _commit() -> str | None:
    """The commit that this source was checked out from; None in an installation."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()
