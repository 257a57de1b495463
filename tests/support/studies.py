"""Results of studies for tests, as an H200 machine might have them."""

from collections.abc import Sequence
from typing import Any

from tests.support.api import RESULT
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult
from warpfold.contract.kinds.scaling import MessagePoint, ScalingPoint, ScalingResult
from warpfold.kernels.accuracy.point import BoundVerdict
from warpfold.kernels.studies.outcome import Outcome

RUN: dict[str, Any] = {
    "backend": "cuda",
    "device": {**RESULT["device"], "backend": "cuda", "name": "NVIDIA H200"},
    "timings": {"queued_ms": 1.0, "total_ms": 2.0},
    "provenance": RESULT["provenance"],
}


def accuracy_point(method: str, n: int, error: float, **changes: Any) -> AccuracyPoint:
    """A measured point of a float32 sum of the pathological array."""
    values: dict[str, Any] = {
        "method": method,
        "op": "sum",
        "distribution": "pathological",
        "dtype": "float32",
        "n": n,
        "outcome": Outcome.MEASURED,
        "value": 1e8,
        "hex": (1e8).hex(),
        "exact": 1e8 + error,
        "exact_hex": (1e8 + error).hex(),
        "correctly_rounded": error == 0,
        "absolute_error": error,
        "relative_error": error / 1e8,
        "ulps": error / 8,
        "condition": 600.0,
        "bound": 1e9,
        "bound_formula": "γ",
        "bound_verdict": BoundVerdict.HELD,
        "runs": 1,
        "repeatable": True,
        "reference": 1e8 + error,
        "reference_error": error,
        "rounded_reference_error": 8.0 * round(error / 8),
        "reference_own_error": 0.0,
        "how": "numba",
        "elapsed_ms": 1.0,
    }
    nothing = dict.fromkeys(AccuracyPoint.model_fields)
    return AccuracyPoint.model_validate({**nothing, **values, **changes})


def accuracy_result(points: Sequence[AccuracyPoint]) -> AccuracyResult:
    return AccuracyResult.model_validate(
        {"points": points, "measured": len(points), "skipped": 0, "failed": 0, "exceeded": 0, **RUN}
    )


def scaling_point(ranks: int, n: int, total_ms: float, baseline_ms: float, **changes: Any) -> ScalingPoint:
    """Strong scaling of the float sum."""
    alone = ranks == 1
    speedup = baseline_ms / total_ms
    values: dict[str, Any] = {
        "scaling": "strong",
        "method": "float",
        "mode": None if alone else "process_per_rank",
        "algorithm": None if alone else "auto",
        "ranks": ranks,
        "n": n,
        "outcome": "measured",
        "samples": 30,
        "local_ms": total_ms / 2,
        "communication_ms": total_ms / 2,
        "total_ms": total_ms,
        "host_ms": total_ms,
        "baseline_ms": baseline_ms,
        "speedup": speedup,
        "efficiency": speedup / ranks,
        "speedup_low": speedup * 0.9,
        "speedup_high": speedup * 1.1,
        "gb_per_s": 1.0,
        "value": 1.0,
        "hex": (1.0).hex(),
        "same_bits": True,
        "times": (),
    }
    nothing = dict.fromkeys(ScalingPoint.model_fields)
    return ScalingPoint.model_validate({**nothing, **values, **changes})


def message_point(size: int, time_us: float, algorithm: str = "ring") -> MessagePoint:
    return MessagePoint.model_validate(
        {
            "mode": "process_per_rank",
            "algorithm": algorithm,
            "ranks": 2,
            "bytes": size,
            "outcome": "measured",
            "reason": None,
            "samples": 30,
            "time_us": time_us,
            "algbw_gbps": size / time_us / 1e3,
            "busbw_gbps": size / time_us / 1e3,
            "correct": True,
        }
    )


def scaling_result(points: Sequence[ScalingPoint] = (), messages: Sequence[MessagePoint] = ()) -> ScalingResult:
    return ScalingResult.model_validate(
        {
            "dtype": "float32",
            "distribution": "normal",
            "note": None,
            "devices": [RUN["device"]] * 2,
            "available": 2,
            "points": points,
            "messages": messages,
            "measured": len(points),
            "skipped": 0,
            "failed": 0,
            "suspect": 0,
            **RUN,
        }
    )
