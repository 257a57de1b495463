"""The peers as rows of the catalogue, which say what each lacks here."""

from dataclasses import dataclass
from importlib.util import find_spec

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.strategy import Strategy, claims

_ELEMENTS = [name for name in DTYPES if name != "bool"]
_DETERMINISM = (3, 6, 0)  # the first version of CCCL in which this interface was seen to work

_SELECTIONS = ("min", "max", "argmin", "argmax")
_BOUND = (
    "γ_n Σ|x| in any order of additions, in float32 for 16-bit floats; integers wrap at 64 bits; min and max of NaN"
)
_BOUND_SELECTION = f"{_BOUND} depend on where it stands"


@dataclass(frozen=True, slots=True)
class CcclPeer:
    """CUB or Thrust: `macro` chooses the peer in peers.cu, `since` is the first CCCL that has it."""

    name: str
    macro: str
    summary: str
    error_bound: str
    claims: frozenset[tuple[str, str]]
    since: tuple[int, int, int] = (0, 0, 0)
    waits: bool = False

    def missing(self) -> str | None:
        """Why it cannot be built here."""
        from warpfold.kernels.cuda.baselines.toolkit import find_toolkit

        try:
            cccl = find_toolkit().cccl
        except Unavailable as error:
            return str(error)
        if cccl.version < self.since:
            needed = ".".join(map(str, self.since))
            return f"needs CCCL {needed} or newer, and this machine has {cccl.release}; install cuda-cccl"
        return None

    def row(self) -> Strategy:
        """The row of the catalogue."""
        return Strategy(
            name=self.name,
            backend="cuda",
            summary=self.summary,
            error_bound=self.error_bound,
            claims=self.claims,
            lacks=self.missing,
        )


CCCL_PEERS = (
    CcclPeer(
        "cub",
        "PEER_CUB",
        "cub::DeviceReduce as it comes: two launches, the same bits from run to run on one GPU.",
        _BOUND_SELECTION,
        claims(("sum", *_SELECTIONS), _ELEMENTS),
    ),
    CcclPeer(
        "cub_not_guaranteed",
        "PEER_CUB_NOT_GUARANTEED",
        "cub::DeviceReduce without a promise of determinism: one launch, block totals added by atomics.",
        "γ_n Σ|x| in any order of additions, which may change from run to run; integers wrap at 64 bits",
        claims(("sum",), ("float32", "float64", "int32", "int64", "uint32", "uint64")),
        since=_DETERMINISM,
    ),
    CcclPeer(
        "cub_gpu_to_gpu",
        "PEER_CUB_GPU_TO_GPU",
        "cub::DeviceReduce with the same bits on every GPU: a reproducible floating-point accumulator.",
        "within a few roundings of Σ|x| (reproducible summation by Demmel and Nguyen); infinities give NaN",
        claims(("sum",), ("float32", "float64")),
        since=_DETERMINISM,
    ),
    CcclPeer(
        "thrust",
        "PEER_THRUST",
        "thrust::reduce, min_element and max_element, which wait for the result and allocate in every call.",
        _BOUND_SELECTION,
        claims(("sum", *_SELECTIONS), _ELEMENTS),
        waits=True,
    ),
)

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")


def _torch_missing() -> str | None:
    return None if find_spec("torch") is not None else "PyTorch is not installed"


TORCH_ROW = Strategy(
    name="torch",
    backend="cuda",
    summary="What PyTorch's own reductions give, on the array as a whole.",
    error_bound="PyTorch promises none; any order of additions keeps γ_n Σ|x| in the accumulator's precision "
    "(float32 for 16-bit floats); integers wrap at 64 bits",
    claims=claims(("sum", "prod", "min", "max", "argmin", "argmax", "count_nonzero", "any", "all"), _FLOATS)
    | claims(("mean",), _FLOATS)
    | claims(("sum", "min", "max", "argmin", "argmax", "count_nonzero", "any", "all"), _INTEGERS)
    | claims(("count_nonzero", "any", "all"), ("bool",)),
    lacks=_torch_missing,
)

PEER_ROWS = (*(peer.row() for peer in CCCL_PEERS), TORCH_ROW)
