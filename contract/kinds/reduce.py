"""What is to be reduced, and how."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import MAX_ELEMENTS, BackendName, JobOptions, OpName, StrategyName
from warpfold.contract.sources import Source, ValuesSource, count_of_source, dtype_of_source
from warpfold.kernels.catalog import backends_for, strategies
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.operands import check, check_arity, check_counts, check_freedom
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.strategy import AUTO


class ReduceSpec(JobOptions):
    """Reduce one array, or for `dot` two, to one value."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "reduce",
                    "op": "sum",
                    "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"},
                },
                {
                    "kind": "reduce",
                    "op": "sum",
                    "strategy": "exact",
                    "backend": "auto",
                    "source": {"type": "generate", "distribution": "normal", "n": 10000000, "seed": 42},
                    "timeout_s": 300,
                    "priority": "normal",
                    "tags": {"course": "p05"},
                },
                {
                    "kind": "reduce",
                    "op": "dot",
                    "source": {"type": "values", "values": [1e16, 1, -1e16], "dtype": "float64"},
                    "other": {"type": "values", "values": [1, 2, 1], "dtype": "float64"},
                },
                {
                    "kind": "reduce",
                    "op": "std",
                    "ddof": 1,
                    "source": {"type": "generate", "distribution": "normal", "n": 1000000, "seed": 42},
                },
            ]
        }
    )

    kind: Literal["reduce"]
    op: OpName = "sum"
    strategy: StrategyName = AUTO
    backend: BackendName = "auto"
    nan_policy: NanPolicy = NanPolicy.PROPAGATE
    source: Source
    other: Source | None = Field(
        None,
        description="the second array of `dot`, as long as `source`; both are floats, of the same dtype or not, or "
        "neither is",
    )
    ddof: int = Field(
        0,
        ge=0,
        le=MAX_ELEMENTS,
        strict=True,
        description="of freedom lost: `var` and `std` divide by n − ddof",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """What the op takes; of files dtype and length are known only where they are, and the worker checks them."""
        op = op_named(self.op)
        check_arity(op, other=self.other is not None, ddof=self.ddof)
        self._be_alike()
        dtype, count = dtype_of_source(self.source), count_of_source(self.source)
        other = None if self.other is None else dtype_of_source(self.other)
        if dtype is not None and other is not None:
            check(op, dtype, other, self.ddof)
        others = None if self.other is None else count_of_source(self.other)
        if count is not None and others is not None:
            check_counts(op, count, others)
        if count:
            check_freedom(op, count, self.ddof)
        return self

    def _be_alike(self) -> None:
        """Integers that were written without a dtype are float64 beside an array of floats."""
        for one, beside, field in ((self.source, self.other, "source"), (self.other, self.source, "other")):
            dtype = None if beside is None else dtype_of_source(beside)
            if isinstance(one, ValuesSource) and dtype is not None and dtype.is_float:
                try:
                    object.__setattr__(self, field, one.beside_floats())  # frozen for everybody else
                except InvalidInput as error:
                    raise InvalidInput(str(error), (error.field or "").replace("source", field, 1)) from None

    @model_validator(mode="after")
    def _claimed(self) -> Self:
        able = self.backends()
        if self.backend not in ("auto", *able):
            dtype = dtype_of_source(self.source)
            raise InvalidInput(
                f"strategy {self.strategy!r} computes {self.op}{'' if dtype is None else f' of {dtype.name}'} on "
                f"{' and '.join(able)}, not on {self.backend}",
                "backend",
            )
        return self

    def backends(self) -> tuple[str, ...]:
        """The backends that can run it, so far as that is known without looking at files. Raises InvalidInput where
        there are none."""
        op = op_named(self.op)
        dtypes = [dtype_of_source(source) for source in (self.source, self.other) if source is not None]
        known = [dtype for dtype in dtypes if dtype is not None]
        if known:
            return backends_for(op, known[0], self.strategy, known[-1] if op.sources == 2 else None)
        able = (row for row in strategies() if self.strategy in (AUTO, row.name))
        found = tuple(dict.fromkeys(row.backend for row in able if any(name == op.name for name, _ in row.claims)))
        if not found:
            raise InvalidInput(f"strategy {self.strategy!r} does not compute {op.name}", "strategy")
        return found
