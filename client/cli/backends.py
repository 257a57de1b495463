"""The options that say where a job runs, which `reduce` and `submit` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from warpfold.client.cli.counts import count_option

Backend = Annotated[
    str | None,
    typer.Option(help="auto, cpu or cuda; gang: all GPUs of a machine; dask: the workers of a Dask cluster."),
]
Partitions = Annotated[
    int | None,
    count_option("With --backend dask: cut the elements into at most N partitions.", least=1),
]


def checked_partitions(partitions: int | None, backend: str | None) -> int | None:
    """The number of partitions. Raises BadParameter where it is given for another backend than dask."""
    if partitions is not None and backend != "dask":
        raise typer.BadParameter("needs --backend dask", param_hint="--partitions")
    return partitions


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that say where to reduce, and where the table goes."""

    locally: bool
    rehash: bool
    to: Path | None
    timeout: float | None
    as_json: bool
