"""Runs the puzzles of thread-block clusters."""

import numpy as np

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.cluster import CheckView, ClusterResult, ClusterSpec
from warpfold.contract.timings import Timings
from warpfold.kernels.puzzles import checks, solve
from warpfold.kernels.puzzles.solve import model
from warpfold.worker.kinds.attempt import Attempt


def run(attempt: Attempt, spec: ClusterSpec) -> Success:
    """Solve the puzzle of `spec`. Raises a KernelError."""
    shape = spec.shape()
    solution = solve(attempt.backend, spec.puzzle, shape)
    values = np.array(solution.values, dtype=np.float32)
    result = ClusterResult(
        puzzle=spec.puzzle.value,
        size=spec.size,
        threads=spec.threads,
        cluster_size=spec.cluster_size,
        values=solution.values,
        texts=tuple(str(value) for value in values),
        hex=tuple(value.hex() for value in solution.values),
        model=solution.model,
        why_model=solution.why_model,
        same_bits_as_model=values.tobytes() == model(spec.puzzle, shape).tobytes(),
        checks=tuple(CheckView(name=check.name, passed=check.passed) for check in checks(solution)),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=Timings(
            queued_ms=attempt.lease.queued_ms,
            prepare_ms=solution.prepare_ms,
            load_ms=max(0.0, attempt.elapsed_ms() - solution.prepare_ms - solution.kernel_ms),
            kernel_ms=solution.kernel_ms,
            total_ms=attempt.elapsed_ms(),
        ),
        provenance=attempt.provenance,
    )
    return Success(result.model_dump(mode="json"))
