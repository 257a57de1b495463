"""Where the elements of a job come from: one file a source, and the union of all."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, get_args

from pydantic import Field

from warpfold.contract.sources.array import ArrayFileSource
from warpfold.contract.sources.dataset import DatasetSource
from warpfold.contract.sources.files import FilesSource
from warpfold.contract.sources.generate import GenerateSource
from warpfold.contract.sources.path import PathSource
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.sources.table import TableSource
from warpfold.contract.sources.upload import UploadSource
from warpfold.contract.sources.values import ValuesSource

Source = Annotated[
    ValuesSource
    | GenerateSource
    | PathSource
    | DatasetSource
    | UploadSource
    | ArrayFileSource
    | TableSource
    | FilesSource,
    Field(discriminator="type"),
]
"""The union of all sources."""

TAGGED_FIELDS = frozenset({"source", "other", "weights", "over", "keys"})
"""Fields that hold a source: in the location of an error the tag follows them."""

TAGGED_LIST = "tables"
"""The field that is a list of sources: the tag follows the number of one."""

SOURCES: Mapping[str, type[SourceSpec]] = MappingProxyType(
    {get_args(source.model_fields["type"].annotation)[0]: source for source in get_args(get_args(Source)[0])}
)
"""The sources by the value of their field `type`."""


def summary_of_source(stored: Mapping[str, Any] | None) -> str:
    """One line about a stored source or its brief form; older versions may have written it."""
    if not stored or "type" not in stored:
        return "nothing"
    kind, rest = stored["type"], [str(value) for name, value in stored.items() if name != "type"]
    known = SOURCES.get(kind)
    line = None if known is None else known.summary(stored)
    return f"{kind} {' '.join(rest)}" if line is None else line
