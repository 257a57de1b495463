"""Device time by CUDA events."""

from typing import Any


class Stopwatch:
    """The time that the stream spent in the parts of it entered with `with`, in milliseconds."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._spans: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        import cupy

        span = (cupy.cuda.Event(), cupy.cuda.Event())
        self._spans.append(span)
        span[0].record(self._stream)

    def __exit__(self, *error: object) -> None:
        self._spans[-1][1].record(self._stream)

    def total_ms(self) -> float:
        """The sum of all spans; waits for the last."""
        import cupy

        if not self._spans:
            return 0.0
        self._spans[-1][1].synchronize()
        return float(sum(cupy.cuda.get_elapsed_time(start, stop) for start, stop in self._spans))
