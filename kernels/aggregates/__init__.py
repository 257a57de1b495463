"""Aggregates: what elements of groups come to, with one state for all layouts, threads, partitions and processes."""
