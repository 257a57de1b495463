import pytest

from warpfold.contract.jobs import summary_of
from warpfold.contract.sources import summary_of_source


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        (
            "reduce",
            {"op": "sum", "source": {"type": "values", "dtype": "float32", "values": [1]}},
            "sum of 1 value as float32",
        ),
        (
            "reduce",
            {"op": "dot", "source": {"type": "path", "path": "a.npy"}, "other": {"type": "path", "path": "b"}},
            "dot of file a.npy · file b",
        ),
        (
            "benchmark",
            {"ops": ["sum"], "dtypes": ["a", "b", "c", "d"], "sizes": [1000, 1 << 30], "strategies": ["exact"]},
            "sum · a, b, c and 1 more · 10³–2³⁰ · exact",
        ),
        (
            "scaling",
            {"sizes": [10**6, 10**8], "sizes_per_rank": [1 << 24], "messages": [8, 4096], "ranks": [1, 2, 4]},
            "10⁶–10⁸ elements · 2²⁴ elements a rank · 8–2¹² bytes · ranks 1, 2, 4",
        ),
        (
            "three_numbers",
            {"a": 1e8, "b": 1.0, "c": -1e8, "dtype": "float32"},
            "1e8 + 1 + -1e8 in every order · float32",
        ),
        ("profile", {"ops": ["sum"], "dtypes": ["float32"], "strategies": ["exact"]}, "sum · float32 · exact"),
        ("preset", {"preset": "p05", "max_n": 100000}, "p05 · max n 10⁵"),
        ("later", {"kind": "later", "shape": "round", "deep": {"a": 1}}, 'shape round · deep {"a": 1}'),
        ("later", {}, "later"),
        ("reduce", {}, "None of nothing"),
    ],
)
def test_a_spec_of_any_version_has_one_line(kind: str, spec: dict[str, object], text: str) -> None:
    assert summary_of(kind, spec) == text


def test_a_brief_source_tells_its_count() -> None:
    assert summary_of_source({"type": "values", "dtype": "int8", "count": 5000, "first": [1]}) == "5,000 values as int8"
