"""Exact reductions of arrays on a GPU, called from Python, beside torch and the kernel's own time:
`python -m benchmarks.resident_cuda`.

A call is timed in a loop on one stream, with one wait at its end: what a program pays that goes on. `waited` is one
call and a wait for its value. `issued` is what a call takes until it returns while the GPU has room for its launches:
the time of Python and of the driver. The kernel's own time is that of a CUDA graph of 20 calls, without Python between
them. Tensors are of PyTorch; the same elements as a CuPy array are timed in the same ways.
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

SIZES = (1, 1_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)

LONG = 100_000_000

IN_FLIGHT = 200
"""Calls that are issued before a wait: fewer launches than a stream takes without a wait (1,024 on Hopper)."""


def looped(call: Callable[[], Any], torch: Any, seconds: float) -> float:
    """Microseconds of a call in a loop that runs three times so long."""
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


def issued(call: Callable[[], Any], torch: Any) -> float:
    """Microseconds until a call returns, while the GPU has room for its launches; the best of ten rounds."""
    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(IN_FLIGHT):
            call()
        best = min(best, (time.perf_counter() - began) / IN_FLIGHT)
    torch.cuda.synchronize()
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


@dataclass(frozen=True, slots=True)
class Calls:
    """One reduction: ours of a tensor and of a CuPy array, and torch's."""

    ours: Call
    of_cupy: Call
    torch: Call


def calls(x: Any, torch: Any) -> dict[str, Calls]:
    """By what they are."""
    import cupy

    z = cupy.from_dlpack(x)
    chosen = {
        "sum": Calls(partial(exact.sum, x), partial(exact.sum, z), partial(torch.sum, x)),
        "mean": Calls(partial(exact.mean, x), partial(exact.mean, z), partial(torch.mean, x)),
        "var": Calls(partial(exact.var, x), partial(exact.var, z), partial(torch.var, x, correction=0)),
        "dot": Calls(partial(exact.dot, x, x), partial(exact.dot, z, z), partial(torch.dot, x, x)),
        "norm2": Calls(partial(exact.norm2, x), partial(exact.norm2, z), partial(torch.linalg.vector_norm, x)),
    }
    if x.numel() >= 1_000_000:
        y, w = x.view(-1, 1000), z.reshape(-1, 1000)
        chosen |= {
            "sum, rows of 1,000": Calls(
                partial(exact.sum, y, axis=1), partial(exact.sum, w, axis=1), partial(torch.sum, y, dim=1)
            ),
            "sum, 1,000 columns": Calls(
                partial(exact.sum, y, axis=0), partial(exact.sum, w, axis=0), partial(torch.sum, y, dim=0)
            ),
            "std, rows of 1,000": Calls(
                partial(exact.std, y, axis=1), partial(exact.std, w, axis=1), partial(torch.std, y, dim=1, correction=0)
            ),
        }
    return chosen


@dataclass(frozen=True, slots=True)
class Row:
    """One call. Times are in microseconds; `ours` are those of tensors."""

    dtype: str
    call: str
    elements: int
    waited_us: float | None
    loop_us: float
    issued_us: float | None
    kernel_us: float
    cupy_loop_us: float
    cupy_issued_us: float | None
    torch_us: float
    torch_issued_us: float | None

    def line(self) -> str:
        times = (self.waited_us, self.loop_us, self.issued_us, self.kernel_us, self.cupy_loop_us, self.cupy_issued_us)
        shown = "".join(
            f"{'–' if each is None else f'{each:.1f}':>9}" for each in (*times, self.torch_us, self.torch_issued_us)
        )
        return f"{self.dtype:9}{self.call:22}{self.elements:12,}{shown}{self.kernel_us / self.loop_us:12.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows to this JSON file")
    parser.add_argument("--sizes", type=int, default=len(SIZES) - 1, help="how many sizes, from 1 element on")
    parser.add_argument("--seconds", type=float, default=0.15, help="how long a loop takes, of which there are three")
    args = parser.parse_args()
    import torch

    heads = ("waited", "loop", "issued", "kernel", "cupy", "issued", "torch", "issued")
    print(f"{'dtype':9}{'call':22}{'elements':>12}{''.join(f'{head:>9}' for head in heads)}{'kernel/loop':>12}")
    rows: list[Row] = []
    for dtype in (torch.float32, torch.float64):
        for size in SIZES[: args.sizes]:
            x = torch.randn(size, device="cuda", dtype=dtype)
            made = calls(x, torch)
            if size >= LONG:
                wide = torch.randn(size, device="cuda").mul_(6).exp_().to(dtype)
                ofs = calls(wide, torch)
                made |= {f"{name}, exp(6·normal)": ofs[name] for name in ("sum", "var", "dot", "norm2")}
            for name, call in made.items():
                loops = [looped(each, torch, args.seconds) for each in (call.ours, call.of_cupy, call.torch)]
                small = size <= 1_000_000
                issues = [issued(each, torch) if small else None for each in (call.ours, call.of_cupy, call.torch)]
                wait = waited(call.ours, torch) if small else None
                row = Row(
                    str(dtype).removeprefix("torch."), name, size, wait, loops[0], issues[0], alone(call.ours, torch),
                    loops[1], issues[1], loops[2], issues[2],
                )  # fmt: skip
                rows.append(row)
                print(row.line(), flush=True)
            del x
    if args.out:
        args.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
