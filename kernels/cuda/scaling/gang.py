"""All GPUs of a machine as one device, for jobs whose processes each open their own."""

from warpfold.kernels.backend import Device, Progress, Reduction
from warpfold.kernels.cuda.gpu.device import driver_release, visible_devices
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.source import Source


class Gang:
    """The GPUs that CUDA shows this process. It holds no context on them: their memory stays with the slots of single
    GPUs until a job's processes ask for it. Raises Unavailable if there are none."""

    def __init__(self) -> None:
        self.gpus = visible_devices()
        if not self.gpus:
            raise Unavailable("CUDA shows no GPU, so there is no gang of them")
        names = dict.fromkeys(gpu.name for gpu in self.gpus)
        release = driver_release()
        self.device = Device(
            backend="cuda",
            name=" + ".join(f"{sum(gpu.name == name for gpu in self.gpus)} × {name}" for name in names),
            index=0,
            memory_bytes=sum(gpu.memory_bytes for gpu in self.gpus),
            cores=sum(gpu.cores for gpu in self.gpus),
            compute_capability=self.gpus[0].compute_capability,
            uuid=None,
            versions=(*((("driver", release),) if release else ()), *self.gpus[0].versions),
        )

    def reduce(
        self,
        source: Source,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Source | None = None,
    ) -> Reduction:
        """Raises Unavailable: one array is a single GPU's work."""
        raise Unavailable("the gang of all GPUs runs scaling studies; a single reduction runs on one GPU")

    def close(self) -> None:
        """Nothing is held."""
