"""The accessor `exact` of xarray gives the same bits in memory and by chunks, and keeps names."""

import numpy as np
import pytest
import xarray as xr

import warpfold.engines.xarray  # noqa: F401 - registers the accessor

ARRAY = xr.DataArray(
    np.random.default_rng(2).standard_normal((20, 4, 5)).astype(np.float32),
    dims=("time", "lat", "lon"),
    coords={"lat": [10.0, 20.0, 30.0, 40.0]},
    attrs={"units": "K"},
)


@pytest.mark.parametrize("op", ["sum", "mean", "var", "std"])
@pytest.mark.parametrize("dim", ["time", ["lat", "lon"], None])
def test_chunks_do_not_change_a_reduction(op: str, dim: str | list[str] | None) -> None:
    in_memory = getattr(ARRAY.exact, op)(dim)
    by_chunks = getattr(ARRAY.chunk({"time": 3, "lat": 1}).exact, op)(dim).compute(scheduler="synchronous")
    assert in_memory.identical(by_chunks)
    assert in_memory.dtype == np.float32


def test_dimensions_and_coordinates_that_are_left_stay() -> None:
    mean = ARRAY.exact.mean("time")
    assert mean.dims == ("lat", "lon")
    assert mean.coords["lat"].to_numpy().tolist() == [10.0, 20.0, 30.0, 40.0]
    assert float(mean[0, 0]) == pytest.approx(float(ARRAY[:, 0, 0].mean()), rel=1e-5)


def test_degrees_of_freedom_reach_the_variance() -> None:
    assert float(ARRAY.exact.var(ddof=1)) == pytest.approx(float(ARRAY.astype(np.float64).var(ddof=1)), rel=1e-6)


def test_an_array_of_another_library_is_not_stripped_of_what_it_carries() -> None:
    class WithUnits(np.ndarray):
        """An array whose class says more than its elements do."""

    carried = xr.DataArray(ARRAY.to_numpy(), dims=ARRAY.dims)
    carried.variable._data = ARRAY.to_numpy().view(WithUnits)
    with pytest.raises(TypeError, match="WithUnits"):
        carried.exact.sum()
