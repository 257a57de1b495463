"""The list of what is compiled."""

import subprocess
import sys

_LIST = """
from warpfold.kernels.cpu.__main__ import listed

def compile_some():
    from warpfold.kernels.cpu.windows.nearest import odd
    odd(1.0, 2.0), odd(1.0, 3.0)

print(*listed(compile_some), sep="\\n")
"""


def test_each_function_is_listed_with_its_types_seconds_and_bytes() -> None:
    run = subprocess.run([sys.executable, "-c", _LIST], check=True, capture_output=True, text=True)
    head, *rows, last = run.stdout.splitlines()
    assert head.split() == ["function", "types", "seconds", "bytes"]
    of_odd = next(row.split() for row in rows if row.startswith("cpu.windows.nearest.odd "))
    assert of_odd[1] == "1"
    assert float(of_odd[2]) > 0
    assert int(of_odd[3].replace(",", "")) > 1000
    assert last.endswith("MiB of memory")
