"""Measurements across all jobs: their table, queries over it, lists and exports, and comparisons of points."""
