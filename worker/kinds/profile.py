"""Profiles kernels: on a GPU as they are launched, elsewhere as they are compiled."""

from collections import Counter
from dataclasses import asdict

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.profile import ProfilePoint, ProfileResult, ProfileSpec
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.compile import nvrtc_version
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.profile.run import profile
from warpfold.kernels.driver import Backend
from warpfold.kernels.studies.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt

_NOTE = "no GPU took part: kernels were compiled for {arch}; what a launch on a GPU decides is null"


def run(attempt: Attempt, spec: ProfileSpec) -> Success:
    """Profile all points of `spec`. Raises CudaError, and Unavailable on a machine without a compiler."""
    axes, gpu = spec.axes(), _gpu(attempt.backend)
    arch = spec.arch if gpu is None else gpu.arch
    total = len(axes) if gpu is not None else len(axes) // len(axes.sizes)
    points: list[ProfilePoint] = []
    libraries = {**attempt.provenance.libraries, "nvrtc": nvrtc_version()}
    attempt.progress(0, total)
    for record in profile(axes, gpu, arch, counters=spec.counters):
        points.append(ProfilePoint.model_validate(asdict(record)))
        attempt.progress(len(points), total)
    outcomes = Counter(point.outcome for point in points)
    result = ProfileResult(
        arch=arch,
        note=_NOTE.format(arch=arch) if gpu is None else None,
        points=tuple(points),
        measured=outcomes[Outcome.MEASURED],
        skipped=outcomes[Outcome.SKIPPED],
        failed=outcomes[Outcome.FAILED],
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=attempt.provenance.model_copy(update={"libraries": libraries}),
    )
    return Success(result.model_dump(mode="json"))


def _gpu(backend: Backend) -> Gpu | None:
    return backend.gpu if isinstance(backend, CudaBackend) else None
