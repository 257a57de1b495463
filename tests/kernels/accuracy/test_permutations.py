"""Random orders."""

from collections import Counter
from itertools import permutations

import numpy as np

from warpfold.kernels.accuracy.permutations import permuted


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
