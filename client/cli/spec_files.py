"""The specs of jobs as people write them, and the files that hold them: a file is a spec, has a spec a line, or is an
array to be reduced."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import yaml

from warpfold.client import uploads
from warpfold.client.api import Client
from warpfold.client.batches import MOST_JOBS
from warpfold.client.cli import batches
from warpfold.client.cli.files import matching
from warpfold.client.cli.opening import check_op
from warpfold.client.contents import FileContent
from warpfold.client.errors import FieldError, Refused
from warpfold.kernels.formats.signature import Format, format_of
from warpfold.kernels.sources.written import float_or_text

_MERGE = "tag:yaml.org,2002:merge"
_MAY_BE_SPECS = (None, Format.JSON, Format.JSON_LINES)
_TABLES_OF_TEXT = (".csv", ".tsv")

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One job: where its spec stands (`specs.jsonl:3`, `runs/a.npy`), the spec, and its array if that is a file to be
    uploaded."""

    place: str
    spec: Spec
    array: Path | None = None

    def sent(self, client: Client) -> Spec:
        """The spec, once the service has the array."""
        return self.spec if self.array is None else self._of(client.upload(self.array).id)

    def shown(self) -> Spec:
        """The spec without sending anything: the array is named by its digest."""
        if self.array is None:
            return self.spec
        return self._of(uploads.digest(FileContent(self.array, rehash=True)))

    def _of(self, dataset_id: str) -> Spec:
        return {**self.spec, "source": {**self.spec["source"], "type": "dataset", "id": dataset_id}}


def is_array(file: str) -> bool:
    """Whether a file holds an array or a table, by its first bytes or, where these are text, by its name."""
    path = Path(file)
    if not path.is_file():
        return False
    try:
        with path.open("rb") as opened:
            return path.suffix.lower() in _TABLES_OF_TEXT or format_of(opened) not in _MAY_BE_SPECS
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None


def entries(files: Sequence[str], read: Callable[[str], Spec], complete: Callable[[Spec], Spec]) -> list[Entry]:
    """The jobs of files and of patterns, in their order; `read` reads the file of one spec, and `complete` adds what
    options say. A faulty file is an error of usage that names the file."""
    listed: list[Entry] = []
    for path in matching(files):
        file = str(path)
        if batches.is_file_of_lines(file):
            listed += [Entry(f"{file}:{number}", spec) for number, spec in batches.read_specs(file, complete)]
        elif is_array(file):
            listed.append(Entry(file, _of_array(complete), path))
        else:
            listed.append(Entry(file, complete(read(file))))
        if len(listed) > MOST_JOBS:
            raise typer.BadParameter(
                f"{file} is one too many: a batch has at most {MOST_JOBS:,} jobs", param_hint="FILE"
            )
    return listed


def _of_array(complete: Callable[[Spec], Spec]) -> Spec:
    spec = complete({})
    source = spec.setdefault("source", {})
    if not isinstance(source, dict) or "type" in source:
        raise typer.BadParameter("is the array to be reduced; options name other elements", param_hint="FILE")
    if spec.get("kind") == "reduce":
        check_op(str(spec.get("op", "sum")), spec)
    return spec


@contextmanager
def naming_places(listed: Sequence[Entry]) -> Iterator[None]:
    """Name the file, or its line, in place of the number of a spec, where the service refuses a batch in the block."""
    try:
        yield
    except Refused as refused:
        places = [entry.place for entry in listed]
        errors = [FieldError(batches.place_of(error.field, places), error.message) for error in refused.errors]
        raise Refused(refused.status, refused.title, refused.detail, errors) from None


class _Loader(yaml.SafeLoader):
    """Reads YAML, which includes JSON. Two kinds of floats stay text, which the service reads: those that JSON has no
    numbers for, and those that are no integers and whose nearest float64 is one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The mapping as it is written. Raises ConstructorError for a name that stands in it twice: one of the two
        values would be lost."""
        node, names = super().compose_mapping_node(anchor), set[str]()
        for key, _ in node.value:
            if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    fault = f"{key.value!r} is written twice in one object"
                    raise yaml.constructor.ConstructorError(problem=fault, problem_mark=key.start_mark)
                names.add(key.value)
        return node


def _float_or_text(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    number = loader.construct_yaml_float(node)
    written = str(node.value).replace("_", "")
    if ":" in written and math.isfinite(number):  # minutes and seconds
        return number
    named = written.lower().lstrip("+-") in (".inf", ".nan")
    return str(number) if named else float_or_text(written)


_Loader.add_constructor("tag:yaml.org,2002:float", _float_or_text)


def read_yaml(text: str) -> Any:
    """The value of a text in YAML. Raises YAMLError."""
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


def number_or_text(text: str) -> int | float | str:
    """The number that `text` says exactly; or the text itself where JSON has no such number, as it has none for "nan"
    and for hex floats: the service reads these."""
    for kind in (int, float_or_text):
        with suppress(ValueError):
            return kind(text)
    return text
