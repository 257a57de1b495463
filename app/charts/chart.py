"""A chart before it is drawn."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as data: anyone can draw it, in any theme.

    `name` is fit for a file's name and unique among the charts of one result. `description` says in words what the
    picture shows, for those who cannot see it. `spec` is Vega-Lite as JSON text, its data included.
    """

    name: str
    title: str
    description: str
    spec: str
