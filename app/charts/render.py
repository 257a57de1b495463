"""Charts drawn as SVG and PNG, without a browser and without a network. Slow (tens of milliseconds, the first call half
a second) and holding the interpreter's lock meanwhile: a server draws through `app.charts.renderer`."""

from html import escape

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.themes import Theme, config

_VEGA_LITE = "6.4"  # that of Altair 6


def svg(chart: Chart, theme: Theme = Theme.LIGHT) -> str:
    """The chart as an SVG element, to stand in a page or a file of its own. Several may stand in one page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(
        chart.spec, vl_version=_VEGA_LITE, config=dict(config(theme)), allowed_base_urls=[]
    )
    # Ids are counted anew for each picture, and would meet in a page.
    drawn = drawn.replace('id="', f'id="{chart.name}-').replace("url(#", f"url(#{chart.name}-")
    spoken = escape(f"{chart.title}. {chart.description}", quote=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{spoken}" ', 1)


def png(chart: Chart, theme: Theme = Theme.LIGHT, scale: float = 2.0) -> bytes:
    """The chart as a PNG image of `scale` pixels a point."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(
        chart.spec, vl_version=_VEGA_LITE, scale=scale, config=dict(config(theme)), allowed_base_urls=[]
    )
    return drawn
