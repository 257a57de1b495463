"""Complex numbers: both parts of sums, means and dot products, and norms, are those of fractions, from files of every
layout; JSON says both parts of a value."""

import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.leases import lease_on
from tests.support.places.web import folders_of, web_server
from warpfold.contract.jobs import result_of
from warpfold.contract.json_value import ComplexHex
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio, round_sqrt
from warpfold.kernels.formats.contents import contents_of
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.worker.execute import Kernels

Run = Callable[..., Any]

PARTS = {"complex64": "float32", "complex128": "float64"}


def numbers(dtype: str, count: int = 24) -> Any:
    """Complex numbers whose sums cancel: floats would lose most digits."""
    random = np.random.default_rng(5)
    parts = random.standard_normal((2, count)) * 10.0 ** random.integers(-9, 9, (2, count))
    return (parts[0] + 1j * parts[1]).astype(dtype)


@pytest.fixture(scope="module")
def run(ran: Run) -> Run:
    def result(source: dict[str, Any] | None, **spec: Any) -> Any:
        return ran({"kind": "reduce", "source": source, **spec})

    return result


def saved(root: Path, name: str, array: Any) -> dict[str, Any]:
    np.save(root / name, array)
    return {"type": "array", "path": name}


def rounded(true: Fraction, dtype: str) -> float:
    return round_ratio(true.numerator, true.denominator, 0, DTYPES[dtype])


def exactly(array: Any) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(float(each.real)), Fraction(float(each.imag))) for each in array.ravel()]


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("layout", ["C", "F", "swapped", "selected"])
def test_sums_means_and_norms_are_those_of_fractions(root: Path, run: Run, dtype: str, layout: str) -> None:
    array, part = numbers(dtype).reshape(4, 6), PARTS[dtype]
    stored = array.astype(array.dtype.newbyteorder(">")) if layout == "swapped" else np.array(array, order="C")
    source = saved(root, "z.npy", np.asfortranarray(array) if layout == "F" else stored)
    if layout == "selected":
        source["select"] = [{"start": 1, "stop": 4, "step": 2}, {"start": 2}]
        array = array[1:4:2, 2:]
    true = exactly(array)
    real, imaginary = sum(re for re, _ in true), sum(im for _, im in true)
    for op, divisor in {"sum": 1, "mean": array.size}.items():
        result = run(source, op=op)
        wanted = complex(rounded(Fraction(real) / divisor, part), rounded(Fraction(imaginary) / divisor, part))
        assert (result.value, result.dtype, result.count) == (wanted, dtype, array.size)
        assert result.hex == ComplexHex(re=wanted.real.hex(), im=wanted.imag.hex())
        assert (result.correctly_rounded, result.state) == (True, None)
    square = sum((re * re + im * im for re, im in true), Fraction())
    squares = run(source, op="sum_squares")
    assert (squares.value, squares.dtype, squares.count) == (rounded(square, part), part, array.size)
    norm = run(source, op="norm2")
    assert norm.value == round_sqrt(square.numerator, square.denominator, 0, DTYPES[part])


@pytest.mark.parametrize("left", ["complex64", "complex128", "float32"])
@pytest.mark.parametrize("right", ["complex64", "complex128"])
def test_dot_conjugates_nothing_as_numpys(root: Path, run: Run, left: str, right: str) -> None:
    first, second = (numbers("complex128")[order] for order in (slice(None), slice(None, None, -1)))
    x, y = ((z if "complex" in dtype else z.real).astype(dtype) for z, dtype in ((first, left), (second, right)))
    result = run(saved(root, "x.npy", x), other=saved(root, "y.npy", y), op="dot")
    pairs = list(zip(exactly(x), exactly(y), strict=True))
    wide = "float64" if "complex128" in (left, right) or "float64" in (left, right) else "float32"
    wanted = complex(
        rounded(sum((a * c - b * d for (a, b), (c, d) in pairs), Fraction()), wide),
        rounded(sum((a * d + b * c for (a, b), (c, d) in pairs), Fraction()), wide),
    )
    assert (result.value, result.count) == (wanted, x.size)
    assert result.dtype == ("complex128" if wide == "float64" else "complex64")
    assert result.value == pytest.approx(complex(np.dot(x.astype("c16"), y.astype("c16"))), rel=1e-3)


def test_what_is_not_finite_has_its_name_in_json(root: Path, run: Run) -> None:
    result = run(saved(root, "z.npy", np.array([complex(np.inf, np.nan), 1j])), op="sum")
    assert repr(result.value) == "(inf+nanj)"
    assert json.loads(result.model_dump_json())["value"] == {"re": "inf", "im": "nan"}
    with pytest.raises(InvalidInput, match="an element is NaN") as caught:
        run(saved(root, "z.npy", np.array([1, complex(0, np.nan)])), op="norm2", nan_policy="raise")
    assert caught.value.field == "nan_policy"
    with pytest.raises(InvalidInput, match="no NaN of complex numbers is left out so far"):
        run(saved(root, "z.npy", np.array([1j])), op="sum", nan_policy="omit")


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("norm1", "is a root, which is rounded for each element"),
        ("norm_inf", "is a root"),
        ("max", "have no order"),
        ("argmin", "have no order"),
        ("var", "enter it together"),
        ("prod", "enter it together"),
    ],
)
def test_an_op_that_cannot_be_exact_is_refused_with_the_reason(root: Path, run: Run, op: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=f"{op} takes no complex64 so far.*{why}") as caught:
        run(saved(root, "z.npy", numbers("complex64")), op=op)
    assert caught.value.field == "op"


def test_nothing_else_takes_the_parts_for_elements(root: Path, run: Run) -> None:
    source = saved(root, "z.npy", numbers("complex64").reshape(4, 6))
    with pytest.raises(InvalidInput, match="takes no complex64 so far"):
        run(source, op="sum", axis=0)
    aggregation = {"op": "sum", "name": "z", "source": source}
    keys = {"name": "k", "source": {"type": "values", "values": [1] * 24}}
    with pytest.raises(InvalidInput, match="takes no complex64 so far"):
        run(None, kind="groupby", by=[keys], aggregations=[aggregation])
    np.save(root / "w.npy", numbers("complex64"))
    with pytest.raises(InvalidInput, match="are reduced one by one so far"):
        run({"type": "files", "paths": ["z.npy", "w.npy"]}, op="sum")
    with pytest.raises(InvalidInput, match="holds complex64, which a source of type array"):
        run({"type": "path", "path": "z.npy"}, op="sum")
    assert run({"type": "files", "paths": ["z.npy"]}, op="sum").value == run(source, op="sum").value


def test_a_long_file_is_read_by_several_threads_to_the_same_value(root: Path, run: Run) -> None:
    array = np.tile(numbers("complex64", 1000), 2500)
    result = run(saved(root, "long.npy", array), op="sum")
    once = exactly(array[:1000])
    parts = [rounded(2500 * sum((each[which] for each in once), Fraction()), "float32") for which in (0, 1)]
    assert (result.value, result.count) == (complex(*parts), array.size)


def test_an_object_of_a_place_is_read_in_order() -> None:
    array = numbers("complex128", 70_001)
    buffer = io.BytesIO()
    np.save(buffer, array)
    with web_server() as web:
        web.files["z.npy"] = buffer.getvalue()
        kernels = Kernels("cpu", "here:cpu", folders_of(web.place()))
        spec = {"kind": "reduce", "op": "mean", "source": {"type": "array", "path": web.url("z.npy")}}
        result: Any = result_of(json.dumps(kernels.run(lease_on(json.dumps(spec)), lambda _: None).result))
    true = exactly(array)
    wanted = [rounded(sum((each[which] for each in true), Fraction()) / array.size, "float64") for which in (0, 1)]
    assert (result.value, result.count) == (complex(*wanted), array.size)


def test_a_look_tells_complex_numbers(root: Path) -> None:
    np.save(root / "z.npy", numbers("complex64"))
    with (root / "z.npy").open("rb") as file:
        (array,) = contents_of(file, TextOptions())
    assert (array.dtype, array.reduced_as) == ("complex64", "complex64")
