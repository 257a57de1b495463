"""`python -m warpfold.worker.serve` is `warpfold serve`."""

from warpfold.worker.serve.command import cli

if __name__ == "__main__":
    cli(prog_name="warpfold serve")
