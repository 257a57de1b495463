"""Counts how the sources are built: modules, lengths, importers, tests: `python -m benchmarks.house [--json] [--walk]`.

A test mirrors a module where it stands at the module's path: `tests/app/results/test_views.py` and
`app/results/views.py`. A test of a whole package has the package's name (`tests/kernels/test_exact.py`), and a test of
a CUDA header that of the header (`tests/kernels/cuda/include/test_reductions.py`). Some folders of tests have no module
to mirror, because they test what several modules do together, or what is no module of ours: the service with its
processes (`integration`, `drills`), numbers and files by every way in (`client/every_way`), the questions that every
row of a registry answers (`registries`), the plans of SQL statements over many rows (`plans`), pages in a browser,
GPUs, documents, deployment, and these scripts. Their files are counted apart.

The graph of imports is read from the syntax of the sources, so that a checkout is counted without being run; a name
that a package hands on counts as imported from the module that it is defined in. `--walk` also measures which of our
functions one reduction runs (`benchmarks/walk.py`).
"""

import argparse
import ast
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.walk import measured_walk

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("app", "client", "contract", "engines", "kernels", "migrations", "worker")
SMALL = 70
LARGE = 400
APART = (
    "benchmarks",
    "browser",
    "client/every_way",
    "deploy",
    "docs",
    "drills",
    "gpu",
    "integration",
    "plans",
    "registries",
)
"""The folders of tests that mirror no module."""
_WALK, _WAITING = "The walk of a job", "The way of a job that waits"
"""Sections of docs/architecture.md."""
_ENTRIES = ("__init__", "__main__")
VAGUE = frozenset(("found", "given", "one", "said", "there", "told", "way"))
"""Names that say nothing of what a variable holds or of what a function returns."""
_NEW = re.compile(r"^\| ([^|`]+) \| (.+) \|$", re.MULTILINE)
_FILE = re.compile(r"`([\w/]*(?:\w\.(?:py|cuh)|/))`")
_CLASS = re.compile(r"`([A-Z]\w+)`")
_PLACE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[^`\s]*\.\w+)`")


@dataclass(frozen=True)
class Folder:
    """A top-level folder: how many modules it has, and the lines of the median one."""

    modules: int
    median_lines: float


@dataclass(frozen=True)
class Figures:
    """The figures of a checkout. `tests` are the files that should mirror a module, and `tests_of_behaviour` the files
    in the folders of `APART`."""

    folders: Mapping[str, Folder]
    over_400_lines: Sequence[str]
    single_importer_under_70_lines: Sequence[str]
    repeated_class_names: Sequence[str]
    modules: int
    modules_with_a_mirrored_test: int
    tests: int
    tests_that_mirror: int
    tests_of_behaviour: int
    tests_that_mirror_nothing: Sequence[str]
    tests_imported_by_others: Sequence[str]
    walk_by_the_architecture: Sequence[str]
    carriers_by_the_architecture: Sequence[str]
    files_for_a_job_that_waits: Sequence[str]
    carriers_of_a_job_that_waits: Sequence[str]
    places_of_a_new: Mapping[str, int]
    vague_variables: Sequence[str]
    walk_measured: Mapping[str, Sequence[str]] | None = None


class House:
    """The sources of a checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._parsed: dict[Path, ast.Module] = {}

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Modules by their dotted names below `warpfold`; revisions of the schema are data, and no modules here."""
        modules = {}
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*.py")):
                parts = path.relative_to(self.root).with_suffix("").parts
                if "versions" not in parts:
                    modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return modules

    @cached_property
    def lines(self) -> dict[str, int]:
        """The number of lines of each module."""
        return {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in self.modules.items()}

    @cached_property
    def _trees(self) -> dict[str, ast.Module]:
        return {name: self._tree(path) for name, path in self.modules.items()}

    def _tree(self, path: Path) -> ast.Module:
        """The syntax of a file, which is parsed once: that takes most of the time of all figures."""
        if path not in self._parsed:
            self._parsed[path] = ast.parse(path.read_text(encoding="utf-8"))
        return self._parsed[path]

    def _imports(self, module: str) -> Iterator[tuple[str, str]]:
        """The pairs (module, name) that a module imports of ours, those imported within functions included."""
        for node in ast.walk(self._trees[module]):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "warpfold":
                source = node.module.removeprefix("warpfold").lstrip(".")
                yield from ((source, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (
                    (alias.name.removeprefix("warpfold."), "")
                    for alias in node.names
                    if alias.name.startswith("warpfold.")
                )

    def _defined_in(self, source: str, name: str) -> str | None:
        """The module that `name` of `source` comes from, through packages that hand it on."""
        below = f"{source}.{name}".strip(".")
        if below in self.modules:
            return below
        if source in self.modules and self.modules[source].stem == "__init__":
            for origin, handed_on in self._imports(source):
                if handed_on == name:
                    return self._defined_in(origin, name)
        return source if source in self.modules else None

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """The modules that import each module. A package that only hands on names does not count as their importer."""
        importers: dict[str, set[str]] = {module: set() for module in self.modules}
        for module, path in self.modules.items():
            used = self._names_used(module) if path.stem == "__init__" else None
            for source, name in self._imports(module):
                target = self._defined_in(source, name)
                if target is not None and target != module and (used is None or name in used):
                    importers[target].add(module)
        return importers

    def _names_used(self, module: str) -> set[str]:
        return {node.id for node in ast.walk(self._trees[module]) if isinstance(node, ast.Name)}

    def single_importer(self) -> list[str]:
        """The modules of less than 70 lines that exactly one other module imports."""
        return [
            module
            for module, path in self.modules.items()
            if path.stem not in _ENTRIES and self.lines[module] < SMALL and len(self.importers[module]) == 1
        ]

    def over_400_lines(self) -> list[str]:
        """The modules of more than 400 lines, with their lengths."""
        return [f"{name}: {count}" for name, count in self.lines.items() if count > LARGE]

    def repeated_classes(self) -> list[str]:
        """The names of classes that a top-level folder defines more than once, with their modules. In a folder, a name
        means one thing, so that nobody asks which. Names with an underscore in front are private."""
        places: dict[tuple[str, str], list[str]] = defaultdict(list)
        for module, tree in self._trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[module.split(".")[0], node.name].append(module)
        return [f"{name}: {', '.join(modules)}" for (_, name), modules in sorted(places.items()) if len(modules) > 1]

    def folders(self) -> dict[str, Folder]:
        """The top-level folders."""
        lines = defaultdict(list)
        for module, count in self.lines.items():
            if self.modules[module].stem != "__init__" or count > 1:
                lines[module.split(".")[0]].append(count)
        return {folder: Folder(len(counts), statistics.median(counts)) for folder, counts in sorted(lines.items())}

    def tests(self) -> list[Path]:
        """The files of tests that should mirror a module, relative to `tests/`."""
        return [path for path in self.all_tests() if not any(path.is_relative_to(folder) for folder in APART)]

    def all_tests(self) -> list[Path]:
        """All files of tests, relative to `tests/`."""
        folder = self.root / "tests"
        return [path.relative_to(folder) for path in sorted(folder.rglob("test_*.py"))]

    def mirrored(self, test: Path) -> str | None:
        """The module or the CUDA header that a test mirrors: tests/app/results/test_views.py → app.results.views."""
        name = test.stem.removeprefix("test_")
        for candidate in (name, f"__{name}__"):
            module = ".".join((*test.parent.parts, candidate))
            if module in self.modules:
                return module
        header = test.parent / f"{name}.cuh"
        return str(header) if (self.root / header).exists() else None

    def tests_that_mirror_nothing(self) -> list[str]:
        """The files of tests that should mirror a module, and mirror none."""
        return [str(test) for test in self.tests() if self.mirrored(test) is None]

    def tests_imported(self) -> list[str]:
        """Tests, or fixtures of a folder, that another file imports from."""
        imports = set()
        for path in sorted((self.root / "tests").rglob("*.py")):
            for node in ast.walk(self._tree(path)):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests."):
                    names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                    if any(re.search(r"\.(test_\w+|conftest)$", name) for name in names):
                        imports.add(f"{path.relative_to(self.root)}: {node.module}")
        return sorted(imports)

    def walk_by_the_architecture(self) -> list[str]:
        """The files that the page on the architecture names on a job's walk."""
        return sorted(set(_PLACE.findall(self._section(_WALK))))

    def carriers_by_the_architecture(self) -> list[str]:
        """The classes that the page names on a job's walk: each carries the job, or its result, for a part of it."""
        return list(dict.fromkeys(_CLASS.findall(self._section(_WALK))))

    def carriers_of_a_job_that_waits(self) -> list[str]:
        """The same of a job that the dispatcher hands over, by the section that says what its way adds to the walk."""
        return list(dict.fromkeys(_CLASS.findall(self._section(_WALK) + self._section(_WAITING))))

    def files_for_a_job_that_waits(self) -> list[str]:
        """The files that the way of such a job adds to the walk."""
        return sorted(set(_PLACE.findall(self._section(_WAITING))) - set(self.walk_by_the_architecture()))

    def places_of_a_new(self) -> dict[str, int]:
        """How many files a new kind, op and so on touches, by the table of docs/development.md, which names a new file
        by its folder."""
        page = self.root / "docs" / "development.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        _, _, table_of_changes = text.partition("\n## Where a change goes\n")
        rows = _NEW.findall(table_of_changes.split("\n## ")[0])
        return {name: len(set(_FILE.findall(place))) for name, place in rows if name != "a new …"}

    def vague_variables(self) -> list[str]:
        """The places, tests and scripts included, where a variable, an attribute or a function gets one of the names in
        `VAGUE`, with or without underscores before it."""
        folders = (*FOLDERS, "benchmarks", "tests")
        paths = (path for folder in folders for path in sorted((self.root / folder).rglob("*.py")))
        places = []
        for path in paths:
            for node in ast.walk(self._tree(path)):
                name = _name_given_by(node)
                if name is not None and name.lstrip("_") in VAGUE:
                    places.append(f"{path.relative_to(self.root)}: {name}")
        return sorted(set(places))

    def _section(self, title: str) -> str:
        page = self.root / "docs" / "architecture.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        _, _, section = text.partition(f"\n## {title}\n")
        return section.split("\n## ")[0]

    def figures(self, walk: Mapping[str, Sequence[str]] | None = None) -> Figures:
        """All figures."""
        tests = self.tests()
        mirrored = {module for test in tests if (module := self.mirrored(test)) is not None}
        modules = [name for name, path in self.modules.items() if path.stem != "__init__"]
        return Figures(
            folders=self.folders(),
            over_400_lines=self.over_400_lines(),
            single_importer_under_70_lines=self.single_importer(),
            repeated_class_names=self.repeated_classes(),
            modules=len(modules),
            modules_with_a_mirrored_test=len(mirrored & set(modules)),
            tests=len(tests),
            tests_that_mirror=sum(self.mirrored(test) is not None for test in tests),
            tests_of_behaviour=len(self.all_tests()) - len(tests),
            tests_that_mirror_nothing=self.tests_that_mirror_nothing(),
            tests_imported_by_others=self.tests_imported(),
            walk_by_the_architecture=self.walk_by_the_architecture(),
            carriers_by_the_architecture=self.carriers_by_the_architecture(),
            files_for_a_job_that_waits=self.files_for_a_job_that_waits(),
            carriers_of_a_job_that_waits=self.carriers_of_a_job_that_waits(),
            places_of_a_new=self.places_of_a_new(),
            vague_variables=self.vague_variables(),
            walk_measured=walk,
        )


def _name_given_by(node: ast.AST) -> str | None:
    """The name that a node of the syntax gives to a variable, an attribute, a function or a class."""
    match node:
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
    return None


def table(figures: Figures) -> str:
    """The figures as a table."""
    lines = [f"{'folder':12}{'modules':>8}{'median lines':>14}"]
    lines += [f"{name:12}{folder.modules:8}{folder.median_lines:14.0f}" for name, folder in figures.folders.items()]
    for title, places in (
        (f"modules over {LARGE} lines", figures.over_400_lines),
        (f"modules under {SMALL} lines with one importer", figures.single_importer_under_70_lines),
        ("class names that occur twice in a folder", figures.repeated_class_names),
        ("imports from a test", figures.tests_imported_by_others),
    ):
        lines += [f"{title}: {len(places)}", *(f"    {place}" for place in places)]
    lines += [
        f"files with a variable of a vague name: {len(figures.vague_variables)}",
        *(f"    {place}" for place in figures.vague_variables),
        f"modules with a mirrored test: {figures.modules_with_a_mirrored_test} of {figures.modules}",
        f"tests that mirror a module: {figures.tests_that_mirror} of {figures.tests} files",
        *(f"    {test} mirrors none" for test in figures.tests_that_mirror_nothing),
        f"files of tests in folders that mirror no module: {figures.tests_of_behaviour}",
        f"files on the walk of a job by docs/architecture.md: {len(figures.walk_by_the_architecture)}",
        f"classes that carry it there: {len(figures.carriers_by_the_architecture)}",
        f"    {', '.join(figures.carriers_by_the_architecture)}",
        f"files that the way of a job that waits adds: {len(figures.files_for_a_job_that_waits)}",
        f"classes that carry such a job: {len(figures.carriers_of_a_job_that_waits)}",
        f"    {', '.join(figures.carriers_of_a_job_that_waits)}",
        "files that a new one touches, by docs/development.md:",
        *(f"    {name}: {count}" for name, count in figures.places_of_a_new.items()),
    ]
    if figures.walk_measured is not None:
        walk = dict(figures.walk_measured)
        made = walk.pop("made", ())
        unmeasured = [file for file in figures.walk_by_the_architecture if file not in walk]
        lines += [f"named by docs/architecture.md and not measured: {', '.join(unmeasured) or 'none'}"]
        lines += [f"files on the measured walk of a reduction: {len(walk)}"]
        lines += [f"    {file}: {', '.join(functions)}" for file, functions in walk.items()]
        lines += [f"data classes made on it: {len(made)}", *(f"    {name}" for name in made)]
    return "\n".join(lines)


def main() -> int:
    """Count, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to count; by default this one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--walk", action="store_true", help="run one reduction, too; needs a .venv in the checkout")
    arguments = parser.parse_args()
    figures = House(arguments.root).figures(measured_walk(arguments.root) if arguments.walk else None)
    print(json.dumps(asdict(figures), indent=1) if arguments.json else table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
