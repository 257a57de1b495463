"""The commands of `warpfold` by name. The module of a command is imported when the command is called, so that help and
a short command do not wait for what reads files."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Row:
    """A command: its module in this folder, whose `register` adds it; its panel in the help of `warpfold`; and what
    that help says of it, which is the first paragraph of its own help."""

    module: str
    panel: str
    summary: str


COMMANDS: Mapping[str, Row] = MappingProxyType(
    {
        "reduce": Row(
            "reducing",
            "Jobs",
            "Reduce a file, by default to its correctly rounded sum; with --axis, --segments or --rolling to an array, "
            "with --by to a table of groups.",
        ),
        "merge": Row(
            "merging",
            "Jobs",
            "Merge tables of exact states: of jobs that were run with --states, and of such tables in files.",
        ),
        "describe": Row(
            "describing",
            "Jobs",
            "Describe the columns of a table in one pass: counts, nulls, NaNs, zeros, moments, extremes and quantiles.",
        ),
        "inspect": Row(
            "inspecting",
            "Jobs",
            "Show the arrays or the columns in a file: dtypes, shapes, and what its metadata know of nulls, chunks, "
            "and sizes.",
        ),
        "submit": Row(
            "submitting",
            "Jobs",
            "Submit a job, from a file, from options, or from both: options win. Prints the job's id.",
        ),
        "run": Row("submitting", "Jobs", "Run a preset: a study that the service knows by name."),
        "jobs": Row(
            "jobs",
            "Jobs",
            "List jobs, newest first. Of --status, --kind and --owner several may be given: a job has one of them.",
        ),
        "show": Row("jobs", "Jobs", "Show a job with its result."),
        "watch": Row(
            "jobs",
            "Jobs",
            "Follow jobs to their ends, one after another, with a live bar, or with --json a line for each change.",
        ),
        "wait": Row(
            "jobs", "Jobs", "Wait for jobs, quietly. Exit code 0 if all succeeded, 1 if not, 5 after the timeout."
        ),
        "cancel": Row("job_changes", "Jobs", "Ask for the end of jobs. A running one ends within about a second."),
        "edit": Row("job_changes", "Jobs", "Change the name, the note or the tags of a job."),
        "delete": Row(
            "job_changes",
            "Jobs",
            "Delete jobs that have ended, with their measurements and stored results. Asks first where a filter chose "
            "them.",
        ),
        "batches": Row("batches", "Jobs", "Follow, wait for, cancel and read batches of jobs."),
        "dataset": Row("datasets", "Data", "Upload, list, rename and delete arrays."),
        "share": Row(
            "access",
            "Data",
            "Share an uploaded array, a job or a batch of yours with users, and with nobody else. "
            "Without an option, show with whom it is shared.",
        ),
        "unshare": Row("access", "Data", "Make an uploaded array, a job or a batch of yours private."),
        "results": Row("results", "Results", "List measurements across jobs, newest first."),
        "compare": Row(
            "results",
            "Results",
            "Compare two benchmarks, or two strategies, case by case, with intervals of confidence.",
        ),
        "artefact": Row("results", "Results", "Download the stored result of a job: very many values, or a table."),
        "report": Row(
            "results",
            "Results",
            "Write the report of a job that has ended. With --output its pictures go into the folder `figures` beside "
            "it.",
        ),
        "ops": Row("catalogue", "Catalogue", "List the reductions."),
        "strategies": Row("catalogue", "Catalogue", "List the ways to reduce."),
        "presets": Row("catalogue", "Catalogue", "List the studies that `warpfold run` knows."),
        "devices": Row("catalogue", "Catalogue", "List the devices that workers hold."),
        "workers": Row("catalogue", "Catalogue", "List the workers and what each is doing."),
        "login": Row(
            "access",
            "Account",
            "Keep a token for a service, readable by you alone. It is asked for, or read from standard input.",
        ),
        "logout": Row("access", "Account", "Forget the token of a service."),
        "whoami": Row("access", "Account", "Show the service, and whom it takes you for."),
        "token": Row(
            "tokens",
            "Account",
            "Create, list, rotate and remove access tokens, by the service: an admin's token manages those of "
            "everybody, any other token those of its user. Without --url, and where the database of a service is on "
            "this machine, the command uses the database instead, and needs no token.",
        ),
        "rotate-token": Row(
            "access",
            "Account",
            "Replace the token by a new one; the old one is useless at once. The new one is kept where the old one "
            "was, or printed where that was given by a variable.",
        ),
        "audit": Row(
            "auditing",
            "Account",
            "List what administrators and tokens did that changed something, newest first. Only admins may.",
        ),
        "mcp": Row(
            "mcp_server",
            "Server",
            "Serve the Model Context Protocol on standard input and output: an assistant can submit jobs and read "
            "results.",
        ),
        "settings": Row(
            "setting_values",
            "Server",
            "Show every setting, its value, and where the value comes from: a variable, a file, or its default.",
        ),
        "doctor": Row(
            "doctor",
            "Server",
            "Check the way to the service and this machine, and say how to mend what is broken.",
        ),
    }
)


class _Plain:
    """Shows no type beside a flag, because a flag takes no value."""

    def get_params(self, context: Any) -> list[Any]:
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class Command(_Plain, TyperCommand):
    """A command."""


class Group(_Plain, TyperGroup):
    """A group of commands, which its help lists by their panels with the first paragraph of what each says of
    itself."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands; nothing is cut."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            summary = str(command.help).partition("\n\n")[0]
            panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append((name, summary))
        for panel, listed in panels.items():
            with formatter.section(panel):
                formatter.write_dl(listed)


def let_help_flow(app: typer.Typer) -> None:
    """Give each command the help of its docstring with the lines of a paragraph joined, so that they end where the
    terminal ends."""
    for group in app.registered_groups:
        assert group.typer_instance is not None, "a group is added with its commands"
        group.cls = Group
        let_help_flow(group.typer_instance)
    for command in app.registered_commands:
        command.cls = Command
        text = inspect.cleandoc(command.help or inspect.getdoc(command.callback) or "")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


class LaterCommand(Command):
    """A command, or a group of commands, whose module is imported when it is called."""

    def __init__(self, name: str, row: Row) -> None:
        super().__init__(name, help=row.summary, rich_help_panel=row.panel, rich_markup_mode=None)
        self._row = row

    def loaded(self) -> Any:
        """The command itself."""
        app = typer.Typer(rich_markup_mode=None)
        import_module(f"{__package__}.{self._row.module}").register(app)
        let_help_flow(app)
        return typer.main.get_group(app).commands[str(self.name)]

    def make_context(self, *args: Any, **options: Any) -> Any:
        """The context of the command itself, by which it is then run."""
        return self.loaded().make_context(*args, **options)


class Commands(Group):
    """The commands of COMMANDS, and behind them others that are registered."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {**{name: LaterCommand(name, row) for name, row in COMMANDS.items()}, **self.commands}
