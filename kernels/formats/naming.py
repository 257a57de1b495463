"""The words of errors about names within a file, and about faults of its contents."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from warpfold.kernels.errors import InvalidInput, KernelError, OutOfMemory, lacks_memory

_MOST_SHOWN = 20
_MOST_LETTERS = 300


def chosen_name(wanted: str | None, names: Sequence[str], what: str, field: str = "array") -> str:
    """`wanted`, or the only name in `names`. Raises InvalidInput naming `field`. Its message lists `names`, and those
    that are most like `wanted` come first; `what` is "an array" or "a column"."""
    noun = what.rsplit(maxsplit=1)[-1]
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    if not names:
        raise InvalidInput(f"holds no {noun} of numbers", field)
    near = [] if wanted is None else get_close_matches(wanted, names, n=3, cutoff=0.5)
    shown = ", ".join(repr(name[:64]) for name in names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")
    if wanted is None:
        raise InvalidInput(f"holds {len(names):,} {noun}s, so that {field} must name one of them: {shown}", field)
    hint = f"; did you mean {' or '.join(repr(name[:64]) for name in near)}?" if near else f"; it holds {shown}"
    raise InvalidInput(f"holds no {noun} {wanted[:64]!r}{hint}", field)


@contextmanager
def damaged(why: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn any of `errors`, which a library raises for a file's contents, into InvalidInput; `why` begins the
    message. A lack of memory is no fault of the file."""
    try:
        yield
    except KernelError:
        raise
    except errors as error:
        lines = str(error).strip().splitlines()
        if lacks_memory(error):
            raise OutOfMemory(f"{why}, for lack of memory: {lines[0][:_MOST_LETTERS] if lines else ''}") from None
        raise InvalidInput(f"{why}: {lines[0][:_MOST_LETTERS] if lines else type(error).__name__}") from None
