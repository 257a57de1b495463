"""One measured point, as a worker reports it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """A row of the table of measurements, less what the database adds.

    `n` counts elements, `bytes` what was read of them, `samples` how many runs the times stand for; times are in
    milliseconds.
    """

    kind: str
    op: str
    dtype: str
    strategy: str
    backend: str
    device: str
    n: int
    bytes: int
    samples: int
    load_ms: float
    kernel_ms: float
    correctly_rounded: bool
