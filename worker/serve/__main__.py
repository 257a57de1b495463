"""`python -m warpfold.worker.serve` is `warpfold serve`."""

import sys

from warpfold.worker.start import NEEDLESS, imports


def main() -> None:
    """Say at once that something goes on, because the imports take a second, and run the command."""
    if "--help" not in sys.argv:
        print("warpfold serve: loading", file=sys.stderr, flush=True)
    with imports(but_for=NEEDLESS):
        from warpfold.worker.serve.command import cli
    cli(prog_name="warpfold serve")


if __name__ == "__main__":
    main()
