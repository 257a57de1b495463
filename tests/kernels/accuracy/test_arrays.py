"""The arrays of a study."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from warpfold.kernels.accuracy import arrays as module
from warpfold.kernels.accuracy.arrays import Arrays, permuted
from warpfold.kernels.cpu import memory
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.source import GeneratedSource

SOURCE = GeneratedSource("normal", 1000, (1 << 64) - 1, DTYPES["float32"])


def test_the_second_array_has_the_next_seed_and_the_first_follows_the_last() -> None:
    second = GeneratedSource("normal", 1000, 0, DTYPES["float32"])
    assert np.array_equal(Arrays(SOURCE).y, second.read(0, 1000))


def test_both_operands_of_a_dot_product_are_permuted_alike() -> None:
    made = Arrays(SOURCE)
    x, y = made.permuted("dot", 2)
    assert np.array_equal(x, permuted(made.x, SOURCE.seed, 2))
    assert np.array_equal(y, permuted(made.y, SOURCE.seed, 2))
    assert len(made.permuted("sum", 2)) == 1


def test_orders_are_kept_while_they_are_small_and_made_again_when_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 2 * 4000)
    made = Arrays(SOURCE)
    orders = [made.permuted("sum", number)[0] for number in range(3)]
    again = [made.permuted("sum", number)[0] for number in range(3)]
    assert [a is b for a, b in zip(orders, again, strict=True)] == [True, True, False]
    assert all(np.array_equal(a, b) for a, b in zip(orders, again, strict=True))


def test_references_are_numpys_in_float64() -> None:
    made = Arrays(SOURCE)
    x, y = made.x.astype(np.float64), made.y.astype(np.float64)
    assert made.reference("sum") == np.sum(x)
    assert made.reference("mean") == np.mean(x)
    assert made.reference("dot") == np.dot(x, y)
    assert made.reference("norm2") == np.sqrt(np.sum(np.square(x)))
    assert made.reference("prod") == np.prod(x)


def test_an_array_that_would_not_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    with pytest.raises(OutOfMemory, match=r"an accuracy study of 1,000,000,000 elements of float32 needs 48,000,000"):
        Arrays(GeneratedSource("normal", 10**9, 0, DTYPES["float32"]))


def test_an_order_holds_every_element_once() -> None:
    for n in (1, 2, 1000, 1 << 18, 600_001):
        array = np.arange(n, dtype=np.float64)
        assert np.array_equal(np.sort(permuted(array, 7, 0)), array)


def test_seed_and_number_name_an_order_and_arrays_of_one_length_get_the_same() -> None:
    x, y = np.arange(300_000, dtype=np.float32), np.arange(300_000, dtype=np.float64)
    assert np.array_equal(permuted(x, 3, 1), permuted(y, 3, 1))
    assert not np.array_equal(permuted(x, 3, 1), permuted(x, 3, 2))
    assert not np.array_equal(permuted(x, 3, 1), permuted(x, 4, 1))


def test_a_largest_seed_is_a_seed() -> None:
    assert permuted(np.arange(5.0), (1 << 64) - 1, 63).size == 5


def test_all_orders_of_four_are_about_equally_frequent() -> None:
    drawn = Counter(tuple(permuted(np.arange(4.0), seed, 0)) for seed in range(2400))
    assert set(drawn) == set(permutations((0.0, 1.0, 2.0, 3.0)))
    squares = sum((count - 100) ** 2 / 100 for count in drawn.values())
    assert squares < 49.7  # χ² with 23 degrees of freedom passes it once in a thousand


def test_an_element_lands_in_any_part_of_a_long_array() -> None:
    n = 1 << 20  # several hands
    places = np.array([int(np.argmax(permuted(np.eye(1, n, 5, dtype=np.float32)[0], seed, 0))) for seed in range(40)])
    assert places.min() < n // 4
    assert places.max() > 3 * n // 4
