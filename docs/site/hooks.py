"""Pages of the site that are made from what they describe: the HTTP contract when the site is built, and the settings,
whose page is in the repository for those who read it there. `python docs/site/hooks.py` writes that page."""

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from warpfold.app.config import Settings
from warpfold.app.main import create_app

_METHODS = ("get", "put", "post", "delete", "patch")
_TAG_TITLES = {"jobs": "Jobs", "results": "Results", "health": "Health and metrics"}
_SHORT = 90
_CONTRACT = "reference/http.md"
SETTINGS = Path(__file__).parents[1] / "reference" / "settings.md"


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Look for no garbage while a build lasts: there is little, and the looking takes a seventh of its time."""
    if command == "build":
        gc.disable()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the decisions and the reports into the navigation: there are more of them with time."""
    docs = Path(config.docs_dir)
    for section in config.nav or ():
        if "Decisions" in section:
            section["Decisions"] = _pages(docs, docs / "decisions")
        if "Reports" in section:
            section["Reports"] = _pages(docs, docs / "reports")
    return config


def _pages(docs: Path, folder: Path) -> list[Any]:
    """The pages of a folder, what introduces it first, and its folders as sections."""
    pages = sorted(folder.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    entries: list[Any] = [str(page.relative_to(docs)) for page in pages]
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        within = _pages(docs, inner)
        if within:
            entries.append({inner.name: within})
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the contract in the place of the page that tells a reader of the repository where it is."""
    document = create_app(Settings(database_url="postgresql://nobody@nowhere.invalid/none")).openapi()
    stands_in = files.get_file_from_path(_CONTRACT)
    if stands_in is not None:
        files.remove(stands_in)
    files.append(File.generated(config, _CONTRACT, content="\n".join(http_page(document)) + "\n"))
    return files


_SETTINGS = """
Every process reads its settings when it starts, each from the first of these places that has it:

1. the variable `WARPFOLD_NAME`,
2. a file that `WARPFOLD_NAME_FILE` names, as secrets of containers are,
3. the file of settings, where its name is written small and without `WARPFOLD_`,
4. its default.

The file of settings is the one that `WARPFOLD_CONFIG` or `warpfold --config FILE` names, or `warpfold.toml` in the
working directory, or `warpfold.toml` in your folder of settings (`~/.config/warpfold/`). It is TOML:

```toml
data_dir = "/srv/warpfold"
data_roots = ["/data", "/scratch"]
max_queued_per_user = 1000
```

Relative paths are relative to the working directory, wherever the file is. A key that is no setting, and a wrong value,
end the process with a line that names the file and the key. Clients read `url`, `token` and `data_dir` in the same
file, so keep one with a token or a password to yourself (`chmod 600`).

`warpfold settings` shows every value and where it comes from; secrets are masked.

"""


def settings_page() -> Iterator[str]:
    """A table of all settings."""
    yield "# Settings"
    yield from _SETTINGS.splitlines()
    yield "| variable | default | what it is |"
    yield "|---|---|---|"
    for name, field in Settings.model_fields.items():
        default = "" if field.default in ("", None, (), {}) else f"`{field.default}`"
        yield f"| `WARPFOLD_{name.upper()}` | {default} | {_cell(field.description)} |"


def http_page(document: Mapping[str, Any]) -> Iterator[str]:
    """The contract, from the document that the api serves at `/openapi.json`."""
    yield "# The HTTP contract"
    yield ""
    yield str(document["info"]["description"]).replace("\n", " ")
    yield ""
    yield "This page is made from the document at `/openapi.json`, which has every field of every body."
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                operation = item[method]
                by_tag.setdefault(operation.get("tags", ["other"])[0], []).append((method, path, operation))
    for tag, operations in by_tag.items():
        yield from ("", f"## {_TAG_TITLES.get(tag, tag.capitalize())}")
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield from ("", "## Bodies")
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _schema(name, schema)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (
        "",
        f"### `{method.upper()} {path}`",
        "",
        f"**{operation['summary']}.** {operation.get('description', '')}",
    )
    parameters = operation.get("parameters", ())
    if parameters:
        yield from ("", "| parameter | in | type | |", "|---|---|---|---|")
        for parameter in parameters:
            what = _cell(parameter.get("description", ""))
            yield f"| `{parameter['name']}` | {parameter['in']} | {_type(parameter['schema'])} | {what} |"
    body = operation.get("requestBody", {}).get("content", {})
    for media_type, content in body.items():
        yield from ("", f"Body: `{media_type}`, {_type(content.get('schema', {}))}.")
    yield from ("", "| status | answer |", "|---|---|")
    for status, response in operation["responses"].items():
        shapes = sorted({_type(content.get("schema", {})) for content in response.get("content", {}).values()} - {""})
        yield f"| {status} | {_cell(response.get('description', ''))} {', '.join(shapes)} |"


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"### {name} {{ #{_anchor(name)} }}", "", _cell(schema.get("description", "")).replace("\\|", "|"))
    if "enum" in schema:
        yield from ("", "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".")
    properties = schema.get("properties", {})
    if properties:
        required = schema.get("required", ())
        yield from ("", "| field | type | |", "|---|---|---|")
        for field, value in properties.items():
            note = [] if field in required else ["optional"]
            if value.get("default") not in (None, "", [], {}):
                note = [f"default `{value['default']}`"]
            description = "; ".join([*note, *([_cell(value["description"])] if "description" in value else [])])
            yield f"| `{field}` | {_type(value)} | {description} |"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{_anchor(name)})"
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(_type(option) for option in schema[word]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        names = ", ".join(f"`{value}`" for value in schema["enum"])
        return names if len(names) <= _SHORT else f"one of {len(schema['enum'])} names"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'any'}"
    return str(schema.get("format") or schema.get("type") or "")


def _anchor(name: str) -> str:
    return f"body-{name.lower()}"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    SETTINGS.write_text("\n".join(settings_page()) + "\n")
