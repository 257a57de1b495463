"""Reductions over partitions, on the workers of a Dask cluster: what they refuse, and what their results tell."""

from typing import Annotated, Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.kernels.aggregates.by_name import combines
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op
from warpfold.kernels.strategy import AUTO, EXACT

MOST_PARTITIONS = 100_000
MOST_WORKERS_SHOWN = 100

PartitionsField = Annotated[
    int | None,
    Field(
        ge=1,
        le=MOST_PARTITIONS,
        strict=True,
        exclude_if=lambda partitions: partitions is None,
        description="For the backend `dask` only: the greatest number of partitions into which the elements are cut. "
        "If it is left out, a partition has about 128 MiB.",
    ),
]


def check_partitioned(op: Op, strategy: str, partitions: int | None, *, of_dask: bool, field: str = "op") -> bool:
    """Whether a reduction is one over partitions. Raises InvalidInput where the answers of partitions cannot be
    combined (it names `field` for the op), and where partitions are asked for of another backend."""
    if not of_dask:
        if partitions is not None:
            raise InvalidInput("partitions are for the backend dask", "partitions")
        return False
    if not combines(op):
        raise InvalidInput(f"{op.name} is not combined from partitions; give the backend cpu, cuda or auto", field)
    if strategy not in (AUTO, EXACT):
        raise InvalidInput(
            f"partitions are combined from exact states, and strategy {strategy!r} gives none; give {EXACT} or {AUTO}",
            "strategy",
        )
    return True


class PartitionWorker(Frozen):
    """A worker of the cluster, and its share of a job."""

    worker: str = Field(description="Address of the Dask worker.")
    host: str = Field(description="Name of the machine.")
    backend: Literal["cpu", "cuda"]
    device: str = Field(description="Name of the device that reduced the partitions.")
    partitions: int = Field(description="The number of partitions that the worker reduced.")
    bytes: int = Field(description="The bytes of the elements of these partitions, as they are in memory.")
    busy_s: float = Field(description="The seconds in which the worker read and reduced.")


class PartitionsView(Frozen):
    """How a job was spread over the workers of a Dask cluster."""

    scheduler: str = Field(description="Address of the scheduler.")
    partitions: int = Field(description="The number of partitions into which the elements were cut.")
    repeated: int = Field(
        description="How many partitions were begun again, because their worker was lost or could not give its result."
    )
    worker_count: int = Field(description="The number of workers that reduced partitions.")
    workers: tuple[PartitionWorker, ...] = Field(
        description=f"The workers, {MOST_WORKERS_SHOWN} at most, of which those that reduced most come first."
    )


SpreadField = Annotated[
    PartitionsView | None,
    Field(
        exclude_if=lambda spread: spread is None,
        description="How the job was spread over a Dask cluster, if it ran on one.",
    ),
]
"""The field `partitions` of a result."""
