"""Parameters of ops: what a request says of an op besides its elements, such as which quantiles."""

from dataclasses import dataclass, fields
from itertools import pairwise
from math import inf

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops.quantiles import METHODS, MOST_QUANTILES

MOST_PICKED = 1_000
"""The most elements of a group that an op picks."""

NO_DIGITS = "decimals and integers alone are rounded to digits: a float has those of its dtype"
MOST_BINS = 1_000


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of an op by name; None where a request leaves one out. A list of `q` asks for a value of each, `k`
    for so many elements, and `bins`, which are edges or the number of equal bins in a `range`, for a count of each. `n`
    is the place of an element in its group, from the last one back where it is negative."""

    q: float | tuple[float, ...] | None = None
    method: str | None = None
    n: int | None = None
    k: int | None = None
    bins: int | tuple[float, ...] | None = None
    range: tuple[float, float] | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all parameters that some op takes."""
        return tuple(each.name for each in fields(cls))

    def check(self, op: str, takes: tuple[str, ...]) -> None:
        """Raise InvalidInput naming a parameter that `op` does not take, or that has no such value."""
        for each in fields(self):
            if getattr(self, each.name) is not None and each.name not in takes:
                raise InvalidInput(f"{op} takes no {each.name}", each.name)
        self._check_q()
        self._check_picked()
        self._check_bins()
        if self.method is not None and self.method not in METHODS:
            raise InvalidInput(f"unknown method {self.method!r}; known: {', '.join(METHODS)}", "method")

    def _check_q(self) -> None:
        if isinstance(self.q, tuple) and not 1 <= len(self.q) <= MOST_QUANTILES:
            raise InvalidInput(f"a list of q has 1 to {MOST_QUANTILES:,} numbers, not {len(self.q):,}", "q")
        for number, q in enumerate(self.each_q):
            if not 0 <= q <= 1:  # NaN is not
                field = f"q.{number}" if isinstance(self.q, tuple) else "q"
                raise InvalidInput(f"q is {q!r}; a quantile lies between 0 and 1", field)

    def _check_picked(self) -> None:
        if self.n is not None and not -MOST_PICKED <= self.n < MOST_PICKED:
            raise InvalidInput(f"n is {self.n:,}; it lies between {-MOST_PICKED:,} and {MOST_PICKED - 1:,}", "n")
        if self.k is not None and not 1 <= self.k <= MOST_PICKED:
            raise InvalidInput(f"k is {self.k:,}; it lies between 1 and {MOST_PICKED:,}", "k")

    def _check_bins(self) -> None:
        if isinstance(self.bins, tuple):
            if self.range is not None:
                raise InvalidInput("edges are no number of bins, which alone has a range", "range")
            if not 2 <= len(self.bins) <= MOST_BINS + 1:
                raise InvalidInput(
                    f"a list of edges has 2 to {MOST_BINS + 1:,} numbers, not {len(self.bins):,}", "bins"
                )
            for number, (low, high) in enumerate(pairwise(self.bins)):
                if not low <= high:  # NaN is not
                    raise InvalidInput(f"the edge {high!r} is less than {low!r} before it", f"bins.{number + 1}")
        elif self.bins is not None:
            if not 1 <= self.bins <= MOST_BINS:
                raise InvalidInput(f"bins is {self.bins:,}; it lies between 1 and {MOST_BINS:,}", "bins")
            if self.range is None:
                raise InvalidInput("a number of bins needs a range; a list of edges needs none", "range")
        elif self.range is not None:
            raise InvalidInput("a range needs a number of bins", "bins")
        if self.range is not None and not -inf < self.range[0] < self.range[1] < inf:
            raise InvalidInput(f"the range {list(self.range)} does not rise from one number to another", "range")

    @property
    def bin_count(self) -> int | None:
        """How many bins there are; None where a request leaves them out."""
        return len(self.bins) - 1 if isinstance(self.bins, tuple) else self.bins

    @property
    def each_q(self) -> tuple[float, ...]:
        """The quantiles that are asked for."""
        if self.q is None:
            return ()
        return self.q if isinstance(self.q, tuple) else (self.q,)

    def beside(self, defaults: "Parameters") -> "Parameters":
        """These parameters, with the `defaults` of those that are left out."""
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        return Parameters(
            **{name: getattr(defaults, name) if value is None else value for name, value in chosen.items()}
        )


NO_PARAMETERS = Parameters()
