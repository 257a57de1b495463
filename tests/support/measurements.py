"""A benchmark's point for tests."""

from typing import Any

from warpfold.contract.measurement import Measurement

POINT = Measurement(
    kind="benchmark",
    op="sum",
    dtype="float32",
    strategy="single_pass",
    backend="cuda",
    device="NVIDIA H200",
    device_uuid="GPU-1",
    driver="580.159.04",
    host="gpu1",
    distribution="normal",
    n=1 << 28,
    bytes=1 << 30,
    samples=40,
    load_ms=None,
    kernel_ms=0.2320,
    correctly_rounded=None,
    cache="cold",
    min_ms=0.2310,
    p95_ms=0.2340,
    rse=0.001,
    low_ms=0.2318,
    high_ms=0.2322,
    host_ms=0.245,
    issue_ms=0.233,
    replay_ms=0.2319,
    launches=1,
    clock="events, stream held",
    ceiling_gbps=4650.0,
    peak_gbps=4916.7,
    clock_before_mhz=1980.0,
    clock_after_mhz=1980.0,
    memory_clock_mhz=3201.0,
    temperature_c=41.0,
    power_w=410.5,
    throttle=["power_cap", "thermal"],
    others=0.0,
    flags=["throttled"],
    value="-0.5",
    relative_error=1e-8,
    distinct_values=1,
)
"""As an H200 might have it."""


def timed(ms: float, spread: float = 0.001) -> dict[str, Any]:
    """The times of a point whose median has an interval of ± `spread` of itself."""
    return {"kernel_ms": ms, "low_ms": ms * (1 - spread), "high_ms": ms * (1 + spread)}


def reduced(kernel_ms: float) -> Measurement:
    """One measured run on a GPU."""
    return Measurement(
        kind="reduce",
        op="sum",
        dtype="float32",
        strategy="exact",
        backend="cuda",
        device="H200",
        n=3,
        bytes=12,
        samples=1,
        load_ms=0.0,
        kernel_ms=kernel_ms,
        correctly_rounded=True,
        device_uuid="GPU-1",
        host="gpu1",
    )


def replace(point: Measurement, **changes: Any) -> Measurement:
    """The same point with other values in some of its fields."""
    return Measurement.model_validate({**dict(point), **changes})
