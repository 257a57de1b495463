"""Parameters of ops: what a request says of an op besides its elements, such as which quantiles."""

from dataclasses import dataclass, fields

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops.quantiles import METHODS, MOST_QUANTILES


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of an op by name; None where a request leaves one out. A list of `q` asks for a value of each."""

    q: float | tuple[float, ...] | None = None
    method: str | None = None

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
        if self.method is not None and self.method not in METHODS:
            raise InvalidInput(f"unknown method {self.method!r}; known: {', '.join(METHODS)}", "method")

    def _check_q(self) -> None:
        if isinstance(self.q, tuple) and not 1 <= len(self.q) <= MOST_QUANTILES:
            raise InvalidInput(f"a list of q has 1 to {MOST_QUANTILES:,} numbers, not {len(self.q):,}", "q")
        for number, q in enumerate(self.each_q):
            if not 0 <= q <= 1:  # NaN is not
                field = f"q.{number}" if isinstance(self.q, tuple) else "q"
                raise InvalidInput(f"q is {q!r}; a quantile lies between 0 and 1", field)

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
