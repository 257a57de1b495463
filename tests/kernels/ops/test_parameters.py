"""Parameters of ops are refused by name where an op takes none, or has no such value."""

import math

import pytest

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops.parameters import Parameters

TAKES = ("q", "method")


@pytest.mark.parametrize(
    ("parameters", "field", "says"),
    [
        (Parameters(q=1.5), "q", "q is 1.5; a quantile lies between 0 and 1"),
        (Parameters(q=-0.1), "q", "q is -0.1"),
        (Parameters(q=math.nan), "q", "q is nan"),
        (Parameters(q=(0.5, math.inf)), "q.1", "q is inf"),
        (Parameters(q=()), "q", "has 1 to 1,000 numbers, not 0"),
        (Parameters(q=(0.5,) * 1001), "q", "not 1,001"),
        (Parameters(q=0.5, method="middle"), "method", "unknown method 'middle'; known: inverted_cdf"),
    ],
)
def test_a_parameter_without_such_a_value_is_refused(parameters: Parameters, field: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        parameters.check("quantile", TAKES)
    assert refused.value.field == field


def test_an_op_takes_only_its_own_parameters() -> None:
    with pytest.raises(InvalidInput, match="sum takes no q") as refused:
        Parameters(q=0.5).check("sum", ())
    assert refused.value.field == "q"
    Parameters(q=(0.0, 1), method="hazen").check("quantile", TAKES)


def test_parameters_that_are_left_out_are_those_of_the_row() -> None:
    chosen = Parameters(method="lower").beside(Parameters(q=0.5, method="linear"))
    assert chosen == Parameters(q=0.5, method="lower")
    assert chosen.each_q == (0.5,)
