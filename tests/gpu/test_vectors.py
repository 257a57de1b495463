"""The GPU against the conformance vectors, as every backend."""

import pytest

from tests.support.kernels.conformance import check_degrees_of_freedom, check_dots, check_ops
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES


@pytest.mark.parametrize("name", DTYPES)
def test_the_exact_strategy_gives_the_values_and_states_of_the_vectors(backend: CudaBackend, name: str) -> None:
    check_ops(backend, name)


@pytest.mark.parametrize("name", DTYPES)
def test_variances_divide_by_the_degrees_of_freedom_of_the_vectors(backend: CudaBackend, name: str) -> None:
    check_degrees_of_freedom(backend, name)


def test_dot_products_have_the_values_and_states_of_the_vectors(backend: CudaBackend) -> None:
    check_dots(backend)
