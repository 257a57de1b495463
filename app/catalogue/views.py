"""Answers of the catalogue: ops, dtypes, distributions, strategies, workers and devices."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from warpfold.app.metrics.devices import Reading
from warpfold.contract.placement import RatesView
from warpfold.contract.provenance import DeviceView
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.generate import DISTRIBUTIONS, Distribution
from warpfold.kernels.ops import OPS, NanPolicy, Op
from warpfold.kernels.strategy import Strategy


class OpView(BaseModel):
    """An op, which reduces elements to one value."""

    name: str
    summary: str
    terms: str = Field(
        description="Terms that the op adds exactly: values, products, moments (values and products), "
        "totals (several sums, of products of up to four elements), or none."
    )
    sources: int = Field(description="Number of arrays that the op takes. An op with 2 arrays needs `other`.")
    ddof: bool = Field(description="Whether the op takes `ddof`.")
    parameters: tuple[str, ...] = Field(description="Names of the fields that say more of the op, such as `q`.")
    empty: bool | int | None = Field(
        description="Value of the op for no elements. If it is null there is none: the job of a whole array fails, and "
        "a value along axes, by segments or by key is null."
    )
    results: dict[str, str] = Field(description="Dtype of the value by dtype of the elements.")

    @classmethod
    def of(cls, op: Op) -> "OpView":
        results = {name: op.result_dtype(dtype) for name, dtype in DTYPES.items()}
        empty = op.empty if op.empty is None or isinstance(op.empty, bool) else int(op.empty)
        return cls(
            name=op.name,
            summary=op.summary,
            terms=op.terms.value,
            sources=op.sources,
            ddof=op.ddof,
            parameters=op.takes,
            empty=empty,
            results=results,
        )


class DTypeView(BaseModel):
    """An element type."""

    name: str
    kind: str
    bytes: int

    @classmethod
    def of(cls, dtype: DType) -> "DTypeView":
        return cls(name=dtype.name, kind=dtype.kind.value, bytes=dtype.itemsize)


class ParameterView(BaseModel):
    """A number that shapes a distribution."""

    name: str
    default: float
    summary: str


class DistributionView(BaseModel):
    """A distribution of the elements of a `generate` source."""

    name: str
    summary: str
    parameters: list[ParameterView]
    dtypes: list[str]

    @classmethod
    def of(cls, row: Distribution) -> "DistributionView":
        parameters = [
            ParameterView(name=parameter.name, default=parameter.default, summary=parameter.summary)
            for parameter in row.parameters
        ]
        return cls(name=row.name, summary=row.summary, parameters=parameters, dtypes=list(row.dtypes))


class Catalogue(BaseModel):
    """Everything that a spec may name."""

    ops: list[OpView]
    dtypes: list[DTypeView]
    distributions: list[DistributionView]
    nan_policies: list[str]

    @classmethod
    def whole(cls) -> "Catalogue":
        return cls(
            ops=[OpView.of(op) for op in OPS.values()],
            dtypes=[DTypeView.of(dtype) for dtype in DTYPES.values()],
            distributions=[DistributionView.of(row) for row in DISTRIBUTIONS.values()],
            nan_policies=[policy.value for policy in NanPolicy],
        )


class StrategyView(BaseModel):
    """A strategy to reduce elements on one backend."""

    name: str
    backend: str
    summary: str
    error_bound: str
    computes: dict[str, list[str]] = Field(description="Dtypes that the strategy computes, by op.")
    missing: str | None = Field(
        description="What the machine of the api lacks to run the strategy; null if it lacks nothing."
    )

    @classmethod
    def of(cls, row: Strategy) -> "StrategyView":
        computes = {
            op: dtypes for op in OPS if (dtypes := [dtype for dtype in DTYPES if row.computes(OPS[op], DTYPES[dtype])])
        }
        return cls(
            name=row.name,
            backend=row.backend,
            summary=row.summary,
            error_bound=row.error_bound,
            computes=computes,
            missing=row.missing,
        )


class Strategies(BaseModel):
    """All strategies, including those that no worker can run at the moment."""

    items: list[StrategyView]


class WorkerView(BaseModel):
    """A worker: the process of one slot."""

    id: str
    slot: str
    backend: str
    host: str
    pid: int
    state: str = Field(
        description="State of the worker: starting, idle, running or stopped; draining while a worker that an "
        "admin drains runs its last job, and drained after that; lost if the heartbeat of the worker "
        "expired."
    )
    job_id: UUID | None = Field(description="Job that the worker runs; null if it runs none.")
    device: str | None = Field(description="Name of the worker's device; null until the device is open.")
    reading: Reading | None = Field(description="Gauges of the device at the latest heartbeat; null if there are none.")
    rates: RatesView | None = Field(description="The speeds of the slot; null until they were measured.")
    version: str
    started_at: datetime
    heartbeat_at: datetime


class Workers(BaseModel):
    """All workers that have reported themselves."""

    items: list[WorkerView]


class DeviceInUse(BaseModel):
    """A device with the workers that use it."""

    host: str
    device: DeviceView
    workers: list[str]
    live: bool = Field(description="Whether a worker of the device could take a job now.")
    rates: RatesView | None = Field(
        description="The speeds of the device, by which jobs with the backend auto are placed; null until a "
        "slot has measured them."
    )


class Devices(BaseModel):
    """All devices that workers have opened."""

    items: list[DeviceInUse]
