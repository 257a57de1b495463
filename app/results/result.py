"""What a job may come to, by kind."""

from app.results.benchmark import BenchmarkResult
from app.results.cluster import ClusterResult
from app.results.reduce import ReduceResult

JobResult = ReduceResult | BenchmarkResult | ClusterResult
"""Told apart by their fields: none allows another's."""
