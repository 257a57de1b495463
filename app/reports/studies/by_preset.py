"""Which comparison belongs to which preset."""

from collections.abc import Mapping
from types import MappingProxyType

from warpfold.app.reports.studies import associativity, correctness, future, puzzles, scaling, three_numbers, throughput
from warpfold.app.reports.studies.study import Compare

COMPARISONS: Mapping[str, Compare] = MappingProxyType(
    {
        "p34-coordination": puzzles.coordination,
        "p34-reduction": puzzles.reduction,
        "p34-advanced": puzzles.advanced,
        "p05-task1-correctness": correctness.correctness,
        "p05-task1-throughput": throughput.throughput,
        "p05-task2-scaling": scaling.scaling,
        "p05-task3-mixed": associativity.distribution("mixed"),
        "p05-task3-pathological": associativity.distribution("pathological"),
        "p05-task3-normal": associativity.distribution("normal"),
        "p05-task3-gpu-vs-cpu": associativity.gpu_vs_cpu,
        "p05-three-numbers": three_numbers.three_numbers,
        "p05-future": future.future,
    }
)
