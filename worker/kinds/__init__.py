"""What a child does for each kind of job: one module a kind, named like the kind, with a function `run`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, get_args

from warpfold.contract.tasks import TaskKind
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Success

Run = Callable[[Attempt, Any], Success]
"""Runs one attempt, whose spec is of the module's kind. Raises a KernelError where the job cannot be done."""


def runs() -> Mapping[str, Run]:
    """What runs each kind. Imports all modules: a child does so once, before its first job."""
    return MappingProxyType({kind: import_module(f"{__name__}.{kind}").run for kind in get_args(TaskKind)})
