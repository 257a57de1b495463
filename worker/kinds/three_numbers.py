"""Adds three numbers in every order."""

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.three_numbers import OrderView, ThreeNumbersResult, ThreeNumbersSpec
from warpfold.kernels.accuracy.errors import add_three
from warpfold.kernels.dtypes import dtype_named
from warpfold.worker.kinds.attempt import Attempt


def run(attempt: Attempt, spec: ThreeNumbersSpec) -> Success:
    """Add the numbers of `spec` in every order, on the host: by IEEE 754 a GPU gives the same sums."""
    a, b, c = spec.numbers()
    added = add_three(a, b, c, dtype_named(spec.dtype))
    result = ThreeNumbersResult(
        dtype=spec.dtype,
        a=float(a),
        b=float(b),
        c=float(c),
        exact=added.rounded,
        exact_hex=added.rounded.hex(),
        orders=tuple(
            OrderView(
                expression=order.expression,
                inner=order.inner,
                inner_hex=order.inner.hex(),
                value=order.value,
                hex=order.value.hex(),
                absolute_error=order.absolute_error,
                relative_error=order.relative_error,
            )
            for order in added.orders
        ),
        distinct_values=len({order.value for order in added.orders}),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=attempt.provenance,
    )
    return Success(result.model_dump(mode="json"))
