"""What the shell offers to complete an option with."""

from warpfold.kernels.ops import OPS


def complete_op(incomplete: str) -> list[tuple[str, str]]:
    """The ops, each with what it computes."""
    return [(op.name, op.summary) for op in OPS.values() if op.name.startswith(incomplete)]
