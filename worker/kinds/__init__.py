"""Runs jobs in the child of a slot. Each kind of job has a module of its name here, with a function `run`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, get_args

from warpfold.app.jobs.attempt import Success
from warpfold.contract.tasks import TaskKind
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.start import NEEDLESS, imports

Run = Callable[[Attempt, Any], Success]
"""Runs one attempt, whose spec is of the module's kind. Raises a KernelError where the job cannot be done."""


def runs() -> Mapping[str, Run]:
    """The function that runs each kind. This imports all modules, which a child does once, before its first job."""
    with imports(but_for=NEEDLESS):
        return MappingProxyType({kind: import_module(f"{__name__}.{kind}").run for kind in get_args(TaskKind)})
