"""Reductions on CPUs and GPUs: what can be computed (`ops`, `dtypes`, `catalog`), of what (`source`), where (`open`).

Nothing is imported here, so that a program that needs one small module does not load NumPy.
"""
