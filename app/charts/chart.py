"""A chart before it is drawn, and the themes that it can be drawn in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any


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


class Theme(StrEnum):
    """Colours of a chart, for a light or for a dark page."""

    LIGHT = "light"
    DARK = "dark"


# The colours are Okabe and Ito's, which the colour-blind can tell apart; greys and darker tones replace black and
# yellow where the page would swallow them. Shapes tell the series apart as well.
_ON_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#e69f00", "#332288", "#56b4e9", "#882255", "#666666")
_ON_DARK = ("#56b4e9", "#e69f00", "#2fc59b", "#e691c7", "#f0e442", "#a99cf0", "#ff8f4d", "#cc6699", "#bbbbbb")


def config(theme: Theme) -> Mapping[str, Any]:
    """Vega-Lite's configuration for `theme`."""
    match theme:
        case Theme.LIGHT:
            return _config("#ffffff", "#1b1f24", "#5a6470", "#e3e7eb", _ON_LIGHT)
        case Theme.DARK:
            return _config("#14181d", "#e8ecf0", "#a7b0ba", "#2b323a", _ON_DARK)


def _config(page: str, ink: str, quiet: str, grid: str, colours: Sequence[str]) -> Mapping[str, Any]:
    return MappingProxyType(
        {
            "background": page,
            "aria": False,  # the picture as a whole has a description: screen readers need not read out each dot
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": {
                "domainColor": quiet,
                "gridColor": grid,
                "labelColor": quiet,
                "tickColor": quiet,
                "titleColor": ink,
                "titleFontWeight": "normal",
                "labelFontSize": 11,
                "titleFontSize": 12,
            },
            "legend": {"labelColor": ink, "titleColor": ink, "labelFontSize": 11, "labelLimit": 260, "symbolSize": 70},
            "title": {"color": ink, "anchor": "start", "fontSize": 14, "subtitleColor": quiet, "subtitleFontSize": 11},
            "text": {"color": quiet},
            "rule": {"color": quiet},
            "range": {"category": list(colours)},
        }
    )
