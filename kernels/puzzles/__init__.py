"""The three exercises in thread-block clusters: coordination, reduction and hierarchy.

They add up a short array in blocks that synchronise as one cluster, each in an order of additions that fixes every bit
of the float32 result. `kernels.cuda.puzzles` runs them on chips that have clusters; `kernels.puzzles.solve` makes the
same additions in the same order anywhere.
"""

from warpfold.kernels.puzzles.puzzle import MAX_CLUSTER, ClusterShape, Puzzle, Solution
from warpfold.kernels.puzzles.solve import Check, checks, solve

__all__ = ["MAX_CLUSTER", "Check", "ClusterShape", "Puzzle", "Solution", "checks", "solve"]
