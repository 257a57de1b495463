"""Whether files are whole and stay as they were while they are read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import Chain, checksums_of, unchanged
from warpfold.kernels.sources.checksums import verified, verify


@contextmanager
def intact(sources: Sequence[tuple[str, object]]) -> Iterator[None]:
    """Raise InvalidInput where a file changes while the block reads `sources`, or where the bytes of a file have
    another checksum than the file says. Each source comes with its name in errors, which may be empty."""
    chains = [part for _, part in sources if isinstance(part, Chain)]
    with verified([each for _, part in sources if not isinstance(part, Chain) for each in checksums_of(part)]):
        yield
    verify([each for chain in chains for each in chain.checksums()])  # a chain opens its links while it is read
    for name, part in sources:
        if not unchanged(part):
            raise InvalidInput(f"{name} changed while it was read".lstrip(), "source")
