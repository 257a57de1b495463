"""The gauges of a real GPU."""

from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.worker.gauges import NvmlGauges


def test_a_gpu_tells_what_the_dashboard_shows(backend: CudaBackend) -> None:
    assert backend.device.uuid is not None
    reading = NvmlGauges(backend.device.uuid).read()
    assert reading.utilisation_percent is not None
    assert reading.memory_used_bytes is not None
    assert reading.memory_total_bytes is not None
    assert 0 < reading.memory_used_bytes <= reading.memory_total_bytes
    assert reading.temperature_c is not None
    assert 0 < reading.temperature_c < 120
    assert reading.power_w is not None
    assert 0 < reading.power_w < 2000
    assert reading.clock_mhz is not None
    assert reading.max_clock_mhz is not None
    assert 0 < reading.clock_mhz <= reading.max_clock_mhz
