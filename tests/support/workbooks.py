"""Workbooks of Excel: written by openpyxl, with words that cells share and with the values of formulas, as Excel writes
both."""

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook

_SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_STRINGS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
_WORD = re.compile(r't="inlineStr"><is>(<t[^>]*>[^<]*</t>)</is>')

Parts = dict[str, str]


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Any]], stored: Mapping[str, str] | None = None) -> Path:
    """Write rows of cells as sheets. A cell that begins with = is a formula, and `stored` has the XML of values that
    are stored with formulas (`{"=1/2": "<v>0.5</v>"}`)."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    rewrite(path, _sharing)
    for formula, value in (stored or {}).items():
        edit(path, f"<f>{formula[1:]}</f><v />", f"<f>{formula[1:]}</f>{value}")
    return path


def _sharing(parts: Parts) -> None:
    """Move the words of cells into the part that all sheets share."""
    words: list[str] = []

    def shared(word: "re.Match[str]") -> str:
        words.append(word[1])
        return f't="s"><v>{len(words) - 1}</v>'

    for name in [*parts]:
        if name.startswith("xl/worksheets/"):
            parts[name] = _WORD.sub(shared, parts[name])
    listed = "".join(f"<si>{word}</si>" for word in words)
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{_SPREADSHEET}">{listed}</sst>'
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_STRINGS}"/></Types>'
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace("</Types>", override)


def edit(path: Path, old: str, new: str, part: str = "xl/worksheets/sheet1.xml") -> None:
    """Replace a text in a part of a workbook."""

    def replaced(parts: Parts) -> None:
        assert old in parts[part], f"{part} has no {old}"
        parts[part] = parts[part].replace(old, new)

    rewrite(path, replaced)


def rewrite(path: Path, change: Callable[[Parts], None]) -> None:
    """Change the parts of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
