"""Benchmarks whose timings can be believed: axes, workloads, clocks, a stopping rule, summaries, flags, tables."""
