"""The conformance vectors: this implementation against files that the reference wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.data.exact.make_vectors import FOLDER, documents
from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ExactState, value_of
from warpfold.kernels.ops import INTEGER, OPS, Terms

NAMES = list(DTYPES)


def cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return cases


def test_the_files_are_what_the_generator_writes() -> None:
    for name, text in documents().items():
        written = Path(FOLDER / name).read_text(encoding="utf-8")
        assert written == text, f"{name}: `python tests/data/exact/make_vectors.py` writes the vectors anew"


@pytest.mark.parametrize("name", NAMES)
def test_states_have_the_limbs_and_bytes_of_the_vectors(name: str) -> None:
    dtype = DTYPES[name]
    for case in cases(name):
        array = array_of_bits([int(pattern, 16) for pattern in case["inputs"]], dtype)
        states = {
            "values": ExactState.empty(Terms.VALUES).add(array),
            "magnitudes": ExactState.empty(Terms.VALUES).add(array, magnitudes=True),
            "products": ExactState.empty(Terms.PRODUCTS).add(array),
        }
        for kind, state in states.items():
            wanted = case["states"][kind]
            assert state.to_bytes().hex() == wanted["bytes"], (case["name"], kind)
            assert list(state.limbs[wanted["first"] :]) == wanted["limbs"], (case["name"], kind)
            assert not any(state.limbs[: wanted["first"]]), (case["name"], kind)


@pytest.mark.parametrize("name", NAMES)
def test_states_round_to_the_values_of_the_vectors(name: str) -> None:
    dtype = DTYPES[name]
    kinds = {"sum": "values", "mean": "values", "norm1": "magnitudes", "sum_squares": "products", "norm2": "products"}
    for case in cases(name):
        if not case["inputs"]:
            continue
        for op, kind in kinds.items():
            state = ExactState.from_bytes(bytes.fromhex(case["states"][kind]["bytes"]))
            value = value_of(OPS[op], [state], OPS[op].result_dtype(dtype))
            wanted = case["results"]["propagate"][op]["value"]
            written = str(value) if OPS[op].result_dtype(dtype) == INTEGER else float(value).hex()
            assert written == wanted, (case["name"], op)


def test_states_of_products_of_two_arrays_have_the_bytes_of_the_vectors() -> None:
    for case in json.loads((FOLDER / "dots.json").read_text(encoding="utf-8"))["dots"]:
        left, right = (
            array_of_bits([int(pattern, 16) for pattern in bits], DTYPES[case[side]])
            for bits, side in zip(case["inputs"], ("left", "right"), strict=True)
        )
        state = ExactState.empty(Terms.PRODUCTS).add_products(left, right)
        assert state.to_bytes().hex() == case["state"]["bytes"], case


def test_merged_states_have_the_bytes_of_the_vectors() -> None:
    for case in json.loads((FOLDER / "merges.json").read_text(encoding="utf-8"))["merges"]:
        whole = ExactState.empty(Terms.VALUES)
        for part in case["parts"]:
            whole = whole.merge(ExactState.from_bytes(bytes.fromhex(part)))
        assert whole.to_bytes().hex() == case["merged"], case["name"]
