"""Each measurement by shape has a row, and each row a backend that runs it."""

import pytest

from warpfold.kernels.bench.contenders import CONTENDERS, contender, contender_names, contenders
from warpfold.kernels.bench.host import shaped as on_host
from warpfold.kernels.cuda.bench import shaped as on_gpu
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.studies.shapes import By


@pytest.mark.parametrize(("backend", "bound"), [("cpu", on_host.BOUND), ("cuda", on_gpu.BOUND)])
def test_every_row_is_run_and_nothing_without_a_row(backend: str, bound: dict[tuple[str, By], object]) -> None:
    rows = [(row.strategy, row.by) for row in CONTENDERS if row.backend == backend]
    assert sorted(rows) == sorted(bound)
    assert len(rows) == len(set(rows)), "a strategy has one row of each kind"


@pytest.mark.parametrize("by", list(By))
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_kind_of_shape_has_the_exact_strategy_and_peers(by: By, backend: str) -> None:
    assert "exact" in [row.strategy for row in contenders(by, backend)]
    assert len(contenders(by, backend)) > 1
    assert {row.strategy for row in contenders(by)} <= set(contender_names())


def test_what_a_strategy_does_not_compute_is_refused_with_what_it_does() -> None:
    assert contender("cub", "cuda", By.AXIS, "sum", "float32", 1).strategy == "cub"
    for asked, reason in [
        (("cub", "cuda", By.AXIS, "sum", "float32", 0), "cub does not reduce along axis 0"),
        (("cub", "cuda", By.AXIS, "mean", "float32", 1), "measured for sum of float32 and float64, not for mean"),
        (("exact", "cpu", By.KEYS, "sum", "int32", None), "not for sum of int32"),
        (("polars", "cpu", By.AXIS, "sum", "float32", 1), "'polars' is not measured by axis on backend 'cpu'"),
    ]:
        with pytest.raises(InvalidInput, match=reason):
            contender(*asked)
