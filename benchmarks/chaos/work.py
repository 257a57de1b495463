"""The work of one user: jobs of every kind whose right values are known, handed in again and again."""

import math
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.chaos.receiver import SECRET
from warpfold.client.api import Client
from warpfold.client.errors import Refused, Unreachable

T = TypeVar("T")

_OUTAGE_S = 300.0
"""How long a user goes on asking a service that does not answer."""
_ROUNDS_AHEAD = 2
_STORED_PAIRS = 150_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that the service accepted, and what it has to come to: a value, the values of pairs (an artefact), or, with
    neither, an end by cancelling."""

    id: str
    kind: str
    value: float | Mapping[str, float] | None = None
    stored: bool = False
    webhook: bool = False


def persistently(ask: Callable[[], T]) -> T:
    """The answer of a service that is killed now and then."""
    give_up = time.monotonic() + _OUTAGE_S
    while True:
        try:
            return ask()
        except (Refused, Unreachable, OSError) as error:
            if isinstance(error, Refused) and error.status < 500 and error.status not in (408, 429):
                raise
            if time.monotonic() > give_up:
                raise
            time.sleep(0.5)


@dataclass
class User:
    """A user with a client. `asked` are all jobs that the service accepted."""

    client: Client
    seed: int
    receiver: str
    asked: list[Asked] = field(default_factory=list)

    def work(self, until: float) -> None:
        """Hand in rounds of jobs until this time of `time.monotonic`; at most a few rounds are under way."""
        draw, ends = random.Random(self.seed), []
        while time.monotonic() < until:
            first = len(self.asked)
            for part in (self._batch, self._singles, self._groups, self._artefact, self._upload, self._cancelled):
                self.asked.extend(part(draw))
            ends.append(self.asked[first:])
            if len(ends) > _ROUNDS_AHEAD:
                self._await(ends.pop(0))

    def _await(self, jobs: Sequence[Asked]) -> None:
        for job in jobs:
            while not persistently(lambda job=job: self.client.job(job.id)).ended:  # type: ignore[misc]
                time.sleep(0.2)

    def _submit(self, spec: Mapping[str, Any]) -> str:
        key = str(uuid.uuid4())  # so that a request whose answer was lost makes no second job
        return persistently(lambda: self.client.submit(spec, key=key)).id

    def _batch(self, draw: random.Random) -> Iterator[Asked]:
        lengths = [draw.randrange(1, 2000) for _ in range(40)]
        specs, key = [_sum_of_arange(n) for n in lengths], str(uuid.uuid4())
        batch = persistently(lambda: self.client.submit_many(specs, key=key))
        for job, n in zip(batch.jobs, lengths, strict=True):
            yield Asked(job, "job of a batch", n * (n - 1) / 2)

    def _singles(self, draw: random.Random) -> Iterator[Asked]:
        for index in range(10):
            values = [draw.uniform(-1, 1) * 2.0 ** draw.randrange(-80, 80) for _ in range(draw.randrange(1, 200))]
            spec = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": values}}
            webhook = index < 3
            if webhook:
                spec["webhook"] = {"url": self.receiver, "secret": SECRET}
            yield Asked(self._submit(spec), "single", math.fsum(values), webhook=webhook)
        n = draw.randrange(10**6, 10**7)
        yield Asked(self._submit(_sum_of_arange(n)), "single of some size", n * (n - 1) / 2)

    def _groups(self, draw: random.Random) -> Iterator[Asked]:
        rows = [(draw.choice("abcdef"), draw.uniform(-1, 1)) for _ in range(500)]
        spec = {
            "kind": "groupby",
            "by": [{"name": "key", "source": {"type": "values", "values": [key for key, _ in rows]}}],
            "aggregations": [
                {"op": "sum", "name": "total", "source": {"type": "values", "values": [value for _, value in rows]}}
            ],
        }
        totals = {key: math.fsum(value for other, value in rows if other == key) for key in {key for key, _ in rows}}
        yield Asked(self._submit(spec), "group-by", totals)

    def _artefact(self, draw: random.Random) -> Iterator[Asked]:
        spec = {**_sum_of_arange(2 * _STORED_PAIRS), "segments": {"length": 2}}
        yield Asked(self._submit(spec), "artefact", stored=True)

    def _upload(self, draw: random.Random) -> Iterator[Asked]:
        array = np.random.default_rng(draw.randrange(2**32)).normal(size=draw.randrange(1, 400_000))
        dataset = persistently(lambda: self.client.upload(array))
        spec = {"kind": "reduce", "op": "sum", "source": {"type": "dataset", "id": dataset.id}}
        yield Asked(self._submit(spec), "job of an upload", math.fsum(array))

    def _cancelled(self, draw: random.Random) -> Iterator[Asked]:
        source = {"type": "generate", "distribution": "normal", "n": 10**12}
        job = self._submit({"kind": "reduce", "op": "sum", "source": source})
        time.sleep(draw.uniform(0.0, 1.0))
        persistently(lambda: self.client.cancel(job))
        yield Asked(job, "cancelled")


def stored_values() -> NDArray[np.float64]:
    """What the artefact of every user has, shape (pairs,)."""
    return np.arange(1.0, 4.0 * _STORED_PAIRS, 4.0)


def _sum_of_arange(n: int) -> dict[str, Any]:
    source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
    return {"kind": "reduce", "op": "sum", "source": source}
