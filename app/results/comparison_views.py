"""How the api answers with compared points."""

from uuid import UUID

from pydantic import BaseModel, Field

from warpfold.app.results.comparison import BenchmarkComparison, ComparedPoints, LeftOut, Regression
from warpfold.app.results.repository import Measured
from warpfold.contract.measurement import PointShape
from warpfold.kernels.bench.compare import Ratio


class RatioView(BaseModel):
    """A ratio of two medians with its confidence interval, which contains the true ratio with at least 95 %
    confidence."""

    value: float
    low: float | None = Field(
        description="Lower end of the interval. Null if one of the two points has too few samples."
    )
    high: float | None
    differs: bool = Field(description="Whether the interval excludes 1.")

    @classmethod
    def of(cls, ratio: Ratio) -> "RatioView":
        interval = ratio.interval
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        return cls(value=ratio.value, low=low, high=high, differs=ratio.differs)


class CaseView(PointShape):
    """The case that was measured: op, dtype, number of elements, state of the caches, distribution and shape."""

    op: str
    dtype: str
    n: int
    cache: str | None
    distribution: str | None

    @classmethod
    def of(cls, point: Measured) -> "CaseView":
        shape = {} if point.shape is None else point.shape.in_columns()
        case = {"op": point.op, "dtype": point.dtype, "n": point.n, "cache": point.cache}
        return cls(**case, distribution=point.distribution, **shape)


class PointView(BaseModel):
    """One side of a comparison: a row of measurements in brief."""

    id: int
    job_id: UUID
    strategy: str
    device: str
    driver: str | None
    kernel_ms: float | None
    low_ms: float | None
    high_ms: float | None
    samples: int
    flags: list[str]

    @classmethod
    def of(cls, point: Measured) -> "PointView":
        return cls(
            id=point.id,
            job_id=point.job_id,
            strategy=point.strategy,
            device=point.device,
            driver=point.driver,
            kernel_ms=point.kernel_ms,
            low_ms=point.low_ms,
            high_ms=point.high_ms,
            samples=point.samples,
            flags=list(point.flags),
        )


class ComparedView(BaseModel):
    """The two points of one case."""

    case: CaseView
    baseline: PointView
    candidate: PointView
    speedup: RatioView = Field(description="Baseline time ÷ candidate time. Above 1, the candidate is faster.")

    @classmethod
    def of(cls, compared: ComparedPoints) -> "ComparedView":
        return cls(
            case=CaseView.of(compared.baseline),
            baseline=PointView.of(compared.baseline),
            candidate=PointView.of(compared.candidate),
            speedup=RatioView.of(compared.ratio),
        )


class LeftOutView(BaseModel):
    """A point that was not compared, and the reason."""

    case: CaseView
    point: PointView
    why: str

    @classmethod
    def of(cls, left_out: LeftOut) -> "LeftOutView":
        return cls(case=CaseView.of(left_out.point), point=PointView.of(left_out.point), why=left_out.why)


class ComparisonView(BaseModel):
    """A candidate against a baseline, case by case."""

    items: list[ComparedView]
    left_out: list[LeftOutView]
    speedup: float | None = Field(
        description="Geometric mean of the speedups of all items. Null if there are no items."
    )
    speedup_differs: bool = Field(
        description="Whether the mean shows a difference: at least one item differs from 1, and no item differs in "
        "the other direction."
    )

    @classmethod
    def of(cls, comparison: BenchmarkComparison) -> "ComparisonView":
        return cls(
            items=[ComparedView.of(points) for points in comparison.compared],
            left_out=[LeftOutView.of(left_out) for left_out in comparison.left_out],
            speedup=comparison.speedup,
            speedup_differs=comparison.differs,
        )


class RegressionView(BaseModel):
    """A case whose latest point is slower than its earlier points."""

    case: CaseView
    latest: PointView
    baseline: PointView = Field(description="Earlier point with the median time.")
    earlier: int = Field(description="Number of earlier points that the latest point was compared with.")
    slowdown: RatioView = Field(description="Latest time ÷ baseline time. Above 1, the latest point is slower.")

    @classmethod
    def of(cls, regression: Regression) -> "RegressionView":
        return cls(
            case=CaseView.of(regression.latest),
            latest=PointView.of(regression.latest),
            baseline=PointView.of(regression.baseline),
            earlier=regression.earlier,
            slowdown=RatioView.of(regression.slowdown),
        )


class Regressions(BaseModel):
    """The cases that got slower, the slowest first."""

    items: list[RegressionView]
