"""Places for work that is heavy: a user has a few of them, and the process some more in all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class NoPlace(Exception):
    """No place is free. `own` says whether that is because the user has as many as one user may have."""

    def __init__(self, *, own: bool) -> None:
        super().__init__(own)
        self.own = own


class Places:
    """At most `of_one_user` places for each user and, where `in_all` is a number, so many together."""

    def __init__(self, of_one_user: int, in_all: int | None = None) -> None:
        self._of_one_user = of_one_user
        self._in_all = in_all
        self._taken: Counter[int] = Counter()

    @contextmanager
    def taken(self, user_id: int) -> Iterator[None]:
        """Hold a place for the user within the block. Raises NoPlace."""
        own = self._taken[user_id] >= self._of_one_user
        if own or (self._in_all is not None and self._taken.total() >= self._in_all):
            raise NoPlace(own=own)
        self._taken[user_id] += 1
        try:
            yield
        finally:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]
