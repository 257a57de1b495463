"""Charts as data (`chart`), made as Vega-Lite by Altair (`vega_lite`) and drawn by vl-convert (`renderer`).

Which charts a result has, its kind says: `app.reports.kinds`. Nothing here fetches anything. Altair and vl-convert take
a second to load, so that a server imports `vega_lite` where it is needed, not when it starts.
"""
