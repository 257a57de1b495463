"""Device time by CUDA events."""

from typing import Any

_KEPT = 64


class Stopwatch:
    """The time that the stream spent in the parts of it entered with `with`, in milliseconds."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._spans: list[tuple[Any, Any]] = []
        self._summed_ms = 0.0

    def __enter__(self) -> None:
        import cupy

        if len(self._spans) == _KEPT:  # no more events however many parts there are; the first half is long done
            self._sum_up(_KEPT // 2)
        span = (cupy.cuda.Event(), cupy.cuda.Event())
        self._spans.append(span)
        span[0].record(self._stream)

    def __exit__(self, *error: object) -> None:
        self._spans[-1][1].record(self._stream)

    def total_ms(self) -> float:
        """The sum of all spans; waits for the last."""
        self._sum_up(len(self._spans))
        return self._summed_ms

    def _sum_up(self, count: int) -> None:
        """Add the first `count` spans to the sum, and forget them."""
        if not count:
            return
        import cupy

        self._spans[count - 1][1].synchronize()
        self._summed_ms += sum(cupy.cuda.get_elapsed_time(start, stop) for start, stop in self._spans[:count])
        del self._spans[:count]
