"""The axes of a scaling study, and what carries its sums."""

from enum import StrEnum


class Scaling(StrEnum):
    """The size that stays the same while ranks are added."""

    STRONG = "strong"  # the array: each rank gets a smaller part
    WEAK = "weak"  # the part of each rank: the array grows


class Method(StrEnum):
    """How each rank reduces its part, and what the ranks then add up."""

    EXACT = "exact"  # the exact state: 64-bit integers, whose sum is the same in any order
    FLOAT = "float"  # single_pass on a GPU, numpy on a CPU: one float64 a rank, rounded in the order of arrival


class Mode(StrEnum):
    """Who drives the ranks."""

    ONE_PROCESS = "one_process"  # all of them: one thread launches for every GPU; on a CPU, threads of one process
    PROCESS_PER_RANK = "process_per_rank"


class Algorithm(StrEnum):
    """The algorithm of an all-reduce. `auto` lets NCCL choose; on a CPU, `auto` is the ring."""

    AUTO = "auto"
    RING = "ring"
    TREE = "tree"


class Carrier(StrEnum):
    """What carries the sums of arrays from rank to rank."""

    PEER_ACCESS = "peer_access"  # stores of each GPU into the memory of the others; NCCL's algorithms play no part
    NCCL = "nccl"
    SHARED_MEMORY = "shared_memory"  # of a host without GPUs
