"""Exact reductions of arrays on a GPU, called from Python, beside torch and the kernel's own time:
`python -m benchmarks.resident_cuda`.

A call is timed in a loop on one stream, with one wait at its end: what a program pays that goes on. `waited` is one
call and a wait for its value. The kernel's own time is that of a CUDA graph of 20 calls, without Python between them.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from warpfold.engines import gpu as exact

SIZES = (1_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)


def looped(call: Callable[[], Any], torch: Any, seconds: float = 0.15) -> float:
    """Microseconds of a call in a loop."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    rounds = max(5, min(2000, int(seconds / max(1e-6, time.perf_counter() - began))))
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(rounds):
            call()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / rounds)
    return best * 1e6


def waited(call: Callable[[], Any], torch: Any) -> float:
    """Microseconds of a call and of the wait for its value; the median of 200."""
    times = []
    for _ in range(200):
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return sorted(times)[100] * 1e6


def alone(call: Callable[[], Any], torch: Any) -> float:
    """Microseconds of the launches of a call without Python between them."""
    graph = torch.cuda.CUDAGraph()
    call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(20):
            call()
    graph.replay()
    best = float("inf")
    for _ in range(5):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        best = min(best, start.elapsed_time(stop) / 20)
    return best * 1e3


Call = Callable[[], Any]


def calls(x: Any, torch: Any) -> dict[str, tuple[Call, Call]]:
    """Ours and torch's, by what they are."""
    chosen: dict[str, tuple[Call, Call]] = {
        "sum": (partial(exact.sum, x), partial(torch.sum, x)),
        "std": (partial(exact.std, x), partial(torch.std, x, correction=0)),
        "dot": (partial(exact.dot, x, x), partial(torch.dot, x, x)),
    }
    if x.numel() >= 1_000_000:
        y = x.view(-1, 1000)
        chosen["sum, rows of 1,000"] = partial(exact.sum, y, axis=1), partial(torch.sum, y, dim=1)
        chosen["sum, 1,000 columns"] = partial(exact.sum, y, axis=0), partial(torch.sum, y, dim=0)
        chosen["std, rows of 1,000"] = partial(exact.std, y, axis=1), partial(torch.std, y, dim=1, correction=0)
    return chosen


@dataclass(frozen=True, slots=True)
class Row:
    """One call. Times are in microseconds."""

    dtype: str
    call: str
    elements: int
    waited_us: float | None
    loop_us: float
    kernel_us: float
    torch_us: float

    def line(self) -> str:
        waited = "–" if self.waited_us is None else f"{self.waited_us:.1f}"
        start = f"{self.dtype:9}{self.call:22}{self.elements:12,}{waited:>9}{self.loop_us:9.1f}{self.kernel_us:9.1f}"
        return f"{start}{self.kernel_us / self.loop_us:12.2f}{self.torch_us:9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows to this JSON file")
    parser.add_argument("--sizes", type=int, default=6, help="how many sizes, from 1,000 elements on")
    args = parser.parse_args()
    import torch

    rows: list[Row] = []
    print(f"{'dtype':9}{'call':22}{'elements':>12}{'waited':>9}{'loop':>9}{'kernel':>9}{'kernel/loop':>12}{'torch':>9}")
    for dtype in (torch.float32, torch.float64):
        for size in SIZES[: args.sizes]:
            x = torch.randn(size, device="cuda", dtype=dtype)
            for name, (ours, theirs) in calls(x, torch).items():
                loop, kernel, peer = looped(ours, torch), alone(ours, torch), looped(theirs, torch)
                wait = waited(ours, torch) if size <= 1_000_000 else None
                row = Row(str(dtype).removeprefix("torch."), name, size, wait, loop, kernel, peer)
                rows.append(row)
                print(row.line(), flush=True)
            del x
    if args.out:
        args.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
