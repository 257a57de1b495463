"""Reductions in parts: which elements a part has, over which devices parts are spread, and how their results merge."""
