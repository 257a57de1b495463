import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from warpfold.client.demo.cases import NORMALS_HEX, cases
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.generate import generate
from warpfold.kernels.source import GeneratedSource


def test_the_published_sum_of_ten_million_normals_is_the_correctly_rounded_one() -> None:
    source = GeneratedSource("normal", 10_000_000, 42, DTYPES["float32"])
    wide = math.fsum(generate(source, 0, source.count))
    nearest = np.float32(wide)
    assert float(nearest).hex() == NORMALS_HEX
    # fsum rounded once already: that is harmless unless it fell on the midpoint of two float32 values.
    for neighbour in (np.nextafter(nearest, np.float32(np.inf)), np.nextafter(nearest, np.float32(-np.inf))):
        assert Fraction(wide) != (Fraction(float(nearest)) + Fraction(float(neighbour))) / 2


def test_every_case_says_what_is_right_or_which_field_is_refused(tmp_path: Path) -> None:
    for case in cases(tmp_path):
        assert (case.expected is None) != (case.refused_field is None)


def test_a_sweep_says_what_each_of_its_jobs_must_give(tmp_path: Path) -> None:
    [sweep] = [case for case in cases(tmp_path) if case.over]
    arrays, ops = sweep.over["source.values"], sweep.over["op"]
    right = []
    for values in (np.array(array, np.float32).tolist() for array in arrays):
        right += [math.fsum(values) if op == "sum" else max(values) for op in ops]
    assert sweep.expected == right
    assert set(ops) == {"sum", "max"}
