"""How commands show their help."""

import inspect
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


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
    """A group of commands."""


def let_help_flow(app: typer.Typer) -> None:
    """Give each command the help of its docstring with the lines of a paragraph joined: Rich would break the lines of
    a terminal where those of the source end, too."""
    for group in app.registered_groups:
        assert group.typer_instance is not None, "a group is added with its commands"
        group.cls = Group
        let_help_flow(group.typer_instance)
    for command in app.registered_commands:
        command.cls = Command
        text = inspect.cleandoc(command.help or inspect.getdoc(command.callback) or "")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
