"""The processes of a group of ranks: started together when they are needed, given the same commands, ended together."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Self, TypeVar

import psutil

from warpfold.kernels.errors import KernelError, OutOfMemory, RankLost
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Mode
from warpfold.kernels.scaling.commands import Command, Join
from warpfold.kernels.scaling.placement import Placement
from warpfold.kernels.scaling.process import Answer, Done, MakeRanks, Ready, Refused, rank_main
from warpfold.kernels.studies.outcome import Outcome

_GRACE_S = 2.0
_LOOK_EVERY_S = 1.0
"""A process that is stopped at two looks in a row counts as lost."""


class ProcessGroup:
    """One process for each of `processes`, the one of rank 0 first, spawned with `environment` set in it.

    The calling thread must outlive the group: Linux ends the processes with it. Whatever goes wrong in one process ends
    all of them, for the others may wait for it for ever. Raises what a rank raised, or RankLost if a process died.
    """

    def __init__(self, processes: Sequence[MakeRanks], environment: Mapping[str, str | None]) -> None:
        self._processes: list[SpawnProcess] = []
        self._connections: list[Connection] = []
        try:
            for make_ranks in processes:
                self._start(make_ranks, environment)
            ready = [answer for answer in self._answers() if isinstance(answer, Ready)]
            self.versions = ready[0].versions
            self.carrier: Carrier | None = self.run(Join([answer.token for answer in ready]))[0]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int | None, ...]:
        return tuple(process.pid for process in self._processes)

    def run(self, command: Command) -> list[Any]:
        """Give `command` to every process; their answers in the order of ranks."""
        for connection, process in zip(self._connections, self._processes, strict=True):
            try:
                connection.send(command)
            except OSError:
                self._lost(process)
        return [answer.answer for answer in self._answers() if isinstance(answer, Done)]

    def close(self) -> None:
        """End all processes: those that are not at work at once, the others after two seconds."""
        for connection in self._connections:
            connection.close()
        deadline = time.monotonic() + _GRACE_S
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
        self._kill()

    def _start(self, make_ranks: MakeRanks, environment: Mapping[str, str | None]) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=rank_main, args=(theirs, make_ranks, environment, os.getpid()), name="rank")
        process.start()
        theirs.close()
        self._processes.append(process)
        self._connections.append(ours)

    def _answers(self) -> list[Answer]:
        """One message of every process; if one refuses, dies or is stopped, that ends the group."""
        answers: dict[int, Answer] = {}
        stopped: set[int] = set()
        while len(answers) < len(self._processes):
            missing = [place for place in range(len(self._processes)) if place not in answers]
            places = {self._connections[place]: place for place in missing}
            sentinels = {self._processes[place].sentinel: place for place in missing}
            signalled = wait([*places, *sentinels], timeout=_LOOK_EVERY_S)
            if not signalled:
                before, stopped = stopped, {place for place in missing if _is_stopped(self._processes[place])}
                for place in before & stopped:
                    self._end_for(self._processes[place], "was stopped")
            for place in [places[source] for source in signalled if source in places]:
                # The last message of a process counts even if the process died.
                try:
                    answers[place] = self._connections[place].recv()
                except (EOFError, OSError):
                    self._lost(self._processes[place])
            for place in [sentinels[source] for source in signalled if source in sentinels]:
                if place not in answers and not self._connections[place].poll():
                    self._lost(self._processes[place])
            for answer in answers.values():
                if isinstance(answer, Refused):
                    self._kill()
                    raise answer.as_error()
        return [answers[place] for place in range(len(self._processes))]

    def _lost(self, process: SpawnProcess) -> None:
        process.join(_GRACE_S)
        code = process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        self._end_for(process, f"died ({how})")

    def _end_for(self, process: SpawnProcess, what: str) -> None:
        """End the group, because something happened to one of its processes."""
        self._kill()
        place = self._processes.index(process)
        raise RankLost(f"process {place + 1} of {len(self._processes)} that ran the ranks {what}")

    def _kill(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()
        for process in self._processes:
            process.join(_GRACE_S)


def _is_stopped(process: SpawnProcess) -> bool:
    """Whether a signal has stopped the process, as SIGSTOP does."""
    try:
        return bool(psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


T = TypeVar("T")


class LazyGroup:
    """A process group, made when it is first needed, and made anew after something went wrong in it."""

    def __init__(self, placement: Placement, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> None:
        self._make: Callable[[], ProcessGroup] = lambda: ProcessGroup(
            placement.processes(mode, algorithm, ranks, largest), placement.environment(algorithm)
        )
        self._group: ProcessGroup | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    @property
    def versions(self) -> tuple[tuple[str, str], ...] | None:
        """The group's libraries; None while there is no group."""
        return None if self._group is None else self._group.versions

    def group(self) -> ProcessGroup:
        if self._group is None:
            self._group = self._make()
        return self._group

    def attempt(self, measure: Callable[[ProcessGroup], T], without: Callable[[Outcome, str], T]) -> T:
        """The point of `measure`, or a point without figures if the group refuses."""
        try:
            return measure(self.group())
        except RankLost:
            raise
        except KernelError as error:
            self._end()
            return without(Outcome.SKIPPED if isinstance(error, OutOfMemory) else Outcome.FAILED, str(error))

    def _end(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
