"""Ranks that do as a test says, in processes of a group."""

import os
import signal
import time
from collections.abc import Sequence

import numpy as np

from warpfold.kernels.errors import CudaError, OutOfMemory
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms
from warpfold.kernels.scaling.axes import Carrier, Method
from warpfold.kernels.scaling.local_ranks import Sum, Timing
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.source import GeneratedSource


class Actor:
    """Rank 0 behaves; `act` is what the others do when told to sample."""

    def __init__(self, rank: int, act: str = "") -> None:
        self._rank, self._act = rank, act
        self._nbytes = 0

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        return (("actor", "1"),)

    @property
    def token(self) -> object:
        return f"token of {self._rank}"

    def join(self, tokens: Sequence[object]) -> Carrier | None:
        self._tokens = tokens
        return Carrier.SHARED_MEMORY

    def load(self, source: GeneratedSource, method: Method) -> None:
        if self._act == "no memory":
            raise OutOfMemory("there is no room")

    def sample(self, runs: int) -> list[list[Timing]]:
        if self._rank:
            _ACTS[self._act]()
        elif self._act:
            time.sleep(60)  # waits for the others, as a collective does
        return [[Timing(0.01, 0.001, 0.011)] * runs]

    def call(self, runs: int) -> list[float]:
        return [0.012] * runs

    def collect(self) -> list[Sum]:
        return [ExactState.empty(Terms.VALUES).add(np.ones(1))]

    def piecewise(self, source: GeneratedSource) -> ExactState:
        return ExactState.empty(Terms.VALUES).add(np.ones(1))

    def prepare_message(self, nbytes: int) -> None:
        self._nbytes = nbytes

    def exchange(self, runs: int) -> list[float]:
        return [1e-3]

    def check(self) -> bool:
        return self._tokens[0] == "token of 0" and self._tokens[self._rank] == self.token and self._nbytes > 0


class Mirror(Actor):
    """Says which variables of the environment it found."""

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, os.environ.get(name, "unset")) for name in ("NCCL_ALGO", "NCCL_NVLS_ENABLE"))


def fail_to_start() -> Actor:
    raise CudaError("no device")


def start_and_die() -> Actor:
    os._exit(3)


def actors(ranks: int, act: str = "") -> list[MakeRanks]:
    from functools import partial

    return [partial(Actor, rank, act) for rank in range(ranks)]


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise() -> None:
    raise CudaError("CUDA_ERROR_ILLEGAL_ADDRESS")


def _bug() -> None:
    raise RuntimeError("a bug")


_ACTS = {"": lambda: None, "killed": _killed, "stopped": _stopped, "raise": _raise, "bug": _bug}
