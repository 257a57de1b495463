"""A scaling study: its points are bounded and checked before anything starts."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from warpfold.kernels.bench.axes import check_axis
from warpfold.kernels.bench.data import Data
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling
from warpfold.kernels.source import GeneratedSource

MAX_RANKS = 64
MAX_MESSAGE = 1 << 34
"""Bytes of the largest message."""

WORD = 8
"""Bytes of the numbers that messages are made of."""

MAX_POINTS = 2000


@dataclass(frozen=True, slots=True)
class ArrayCase:
    """One array of `n` elements in all on `ranks` ranks; `mode` and `algorithm` are None for a single rank."""

    scaling: Scaling
    method: Method
    mode: Mode | None
    algorithm: Algorithm | None
    ranks: int
    n: int

    @property
    def baseline_n(self) -> int:
        """Elements of the array that one rank reduces for comparison: this one, or in weak scaling one part of it."""
        return self.n if self.scaling is Scaling.STRONG else self.n // self.ranks


@dataclass(frozen=True, slots=True)
class MessageCase:
    """All-reduces of `nbytes` on `ranks` ranks."""

    mode: Mode
    algorithm: Algorithm
    ranks: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Study:
    """The lists that a study varies. `sizes` are whole arrays (strong scaling), `sizes_per_rank` parts (weak scaling),
    `messages` bytes of all-reduces; each point takes `samples` runs, fewer if they take longer than `time_limit_s`.

    Raises InvalidInput naming the field: an empty or repeating list, a number out of bounds, a dtype that is no float,
    data that the distribution cannot make.
    """

    sizes: tuple[int, ...] = ()
    sizes_per_rank: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    ranks: tuple[int, ...] = (1, 2, 4, 8)
    methods: tuple[Method, ...] = (Method.EXACT, Method.FLOAT)
    modes: tuple[Mode, ...] = (Mode.ONE_PROCESS, Mode.PROCESS_PER_RANK)
    algorithms: tuple[Algorithm, ...] = (Algorithm.RING, Algorithm.TREE)
    dtype: str = "float32"
    data: Data = field(default_factory=Data)
    samples: int = 30
    time_limit_s: float = 5.0

    def __post_init__(self) -> None:
        if not (self.sizes or self.sizes_per_rank or self.messages):
            raise InvalidInput("name at least one size, size per rank or message", "sizes")
        for name in ("ranks", "methods", "modes", "algorithms"):
            check_axis(name, getattr(self, name))
        for name in ("sizes", "sizes_per_rank", "messages"):
            check_axis(name, getattr(self, name), may_be_empty=True)
        if not all(1 <= ranks <= MAX_RANKS for ranks in self.ranks):
            raise InvalidInput(f"there are 1 to {MAX_RANKS} ranks", "ranks")
        if not all(WORD <= size <= MAX_MESSAGE and size % WORD == 0 for size in self.messages):
            raise InvalidInput(f"a message has {WORD} to {MAX_MESSAGE} bytes, a multiple of {WORD}", "messages")
        if self.dtype not in DTYPES or not DTYPES[self.dtype].is_float:
            raise InvalidInput("a scaling study sums floats", "dtype")
        for name, sizes in (("sizes", self.sizes), ("sizes_per_rank", self.sizes_per_rank)):
            if sizes and min(sizes) < max(self.ranks):
                raise InvalidInput("there must be at least one element for each rank", name)
        if len(self) > MAX_POINTS:
            raise InvalidInput(f"the lists multiply to {len(self)} points; the most is {MAX_POINTS}", "ranks")
        for n in self.sizes + tuple(size * max(self.ranks) for size in self.sizes_per_rank):
            self.source(n)

    def __len__(self) -> int:
        return sum(1 for _ in self.arrays()) + sum(1 for _ in self.exchanges())

    def source(self, n: int) -> GeneratedSource:
        """The array of `n` elements, fit to be sent to another process."""
        made = self.data.source(self.dtype, n)
        return replace(made, parameters=dict(made.parameters))

    def groups(self) -> Iterator[tuple[Mode, Algorithm, int]]:
        """Every group of two ranks and more."""
        for mode in self.modes:
            for algorithm in self.algorithms:
                for ranks in sorted(self.ranks):
                    if ranks > 1:
                        yield mode, algorithm, ranks

    def alone(self) -> Iterator[ArrayCase]:
        """The points of one rank: what all others are compared with, whether `ranks` lists 1 or not."""
        for method in self.methods:
            for scaling, sizes in ((Scaling.STRONG, self.sizes), (Scaling.WEAK, self.sizes_per_rank)):
                for n in sizes:
                    yield ArrayCase(scaling, method, None, None, 1, n)

    def together(self, mode: Mode, algorithm: Algorithm, ranks: int) -> Iterator[ArrayCase]:
        """The points of one group."""
        for method in self.methods:
            for n in self.sizes:
                yield ArrayCase(Scaling.STRONG, method, mode, algorithm, ranks, n)
            for n in self.sizes_per_rank:
                yield ArrayCase(Scaling.WEAK, method, mode, algorithm, ranks, n * ranks)

    def arrays(self) -> Iterator[ArrayCase]:
        """Every array, those of one rank first."""
        yield from self.alone()
        for group in self.groups():
            yield from self.together(*group)

    def exchanges(self) -> Iterator[MessageCase]:
        """Every message."""
        for group in self.groups():
            for nbytes in self.messages:
                yield MessageCase(*group, nbytes)


def shard(n: int, ranks: int, rank: int) -> tuple[int, int]:
    """The first element of `rank`'s part of `n`, and the one behind its last; parts differ by at most one element."""
    return n * rank // ranks, n * (rank + 1) // ranks
