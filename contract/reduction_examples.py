"""Examples of reductions and of their results, as the API's description shows them."""

from pydantic.config import JsonDict

from warpfold.contract.placement import PLACEMENT_EXAMPLE
from warpfold.contract.provenance import DEVICE_EXAMPLE, PROVENANCE_EXAMPLE
from warpfold.contract.timings import TIMINGS_EXAMPLE

REDUCE_SPECS: list[JsonDict] = [
    {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"}},
    {
        "kind": "reduce",
        "op": "sum",
        "strategy": "exact",
        "backend": "auto",
        "source": {"type": "generate", "distribution": "normal", "n": 10000000, "seed": 42},
        "timeout_s": 300,
        "priority": "normal",
        "tags": {"course": "p05"},
    },
    {
        "kind": "reduce",
        "op": "dot",
        "source": {"type": "values", "values": [1e16, 1, -1e16], "dtype": "float64"},
        "other": {"type": "values", "values": [1, 2, 1], "dtype": "float64"},
    },
    {"kind": "reduce", "op": "std", "ddof": 1, "source": {"type": "generate", "distribution": "normal", "n": 1000000}},
    {
        "kind": "reduce",
        "op": "sum",
        "axis": 0,
        "source": {"type": "values", "values": [1e16, 1.0, 1.0, 2.0, -1e16, 4.0], "shape": [3, 2]},
    },
    {
        "kind": "reduce",
        "op": "mean",
        "segments": {"offsets": [0, 2, 2, 5]},
        "source": {"type": "values", "values": [1.0, 2.0, 3.0, 4.0, 5.0]},
    },
    {
        "kind": "reduce",
        "op": "mean",
        "window": {"rows": 3, "min_count": 1},
        "source": {"type": "values", "values": [1e300, 1.0, 2.0, 3.0, 4.0]},
    },
]

REDUCE_EXAMPLE: JsonDict = {
    "value": 1.0,
    "hex": "0x1.0000000000000p+0",
    "dtype": "float32",
    "count": 3,
    "nulls": 0,
    "input": None,
    "op": "sum",
    "strategy": "exact",
    "correctly_rounded": True,
    "backend": "cpu",
    "device": DEVICE_EXAMPLE,
    "placement": PLACEMENT_EXAMPLE,
    "timings": TIMINGS_EXAMPLE,
    "provenance": PROVENANCE_EXAMPLE,
    "state": "V0ZYUwEACAADAAAAAAAAACEAAQAAAAAAAAAEAA==",
}

ARRAY_EXAMPLE: JsonDict = {
    "shape": [2],
    "values": [2.0, 7.0],
    "hex": ["0x1.0000000000000p+1", "0x1.c000000000000p+2"],
    "dtype": "float64",
    "count": 6,
    "counts": [3, 3],
    "nulls": 0,
    "input": None,
    "op": "sum",
    "strategy": "exact",
    "kernel": "turned_columns",
    **{name: REDUCE_EXAMPLE[name] for name in ("correctly_rounded", "backend", "device", "timings", "provenance")},
    "placement": {**PLACEMENT_EXAMPLE, "reason": "Only CPU slots compute this reduction."},
}
