"""Charts of results: made as Vega-Lite by Altair (`lines`, and a module a kind of result), drawn by vl-convert
(`render`, in a process of its own: `press`). Nothing here fetches anything.

Altair and vl-convert take a second to load, so whoever serves imports these modules where they are needed.
"""
