"""The rates of a slot: measured once on this machine while the slot is idle, kept in a file, and followed as jobs run
(docs/decisions/0030-where-work-ends-first.md)."""

import fcntl
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog
from pydantic import ValidationError
from structlog.typing import FilteringBoundLogger

from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.placement import RatesView
from warpfold.contract.provenance import DeviceView
from warpfold.contract.tasks import TaskSpec
from warpfold.kernels.driver import Backend
from warpfold.kernels.machine.rates import Rates, measure
from warpfold.kernels.strategy import EXACT

log: FilteringBoundLogger = structlog.get_logger()

_LEAST_BYTES = 1 << 26
"""The least bytes of a job that corrects a rate. Of a smaller job, the start takes too much of the time."""

_WEIGHT = 1 / 8
"""The weight of one job in the running mean."""

_SLOWEST = 1 / 2
"""The least share of the rate for a job that corrects it. A slower job had a file that was not in memory, or the
machine had other work."""

_NEWS = 0.1
"""A rate is reported again when it has changed by this share."""

_AGAIN_S = 3600.0
"""After a child died while it measured, nothing is measured for this time."""


class SlotRates:
    """The rates of one slot. They are kept in `folder` from one start to the next. With None nothing is measured."""

    def __init__(self, folder: Path | None, device: DeviceView, version: str) -> None:
        fields = device.model_dump(mode="json")
        key = hashlib.sha256(json.dumps([fields, version], sort_keys=True).encode()).hexdigest()
        self._folder = folder
        self._name = f"{device.backend}-{key[:16]}"
        self._steps: Iterator[Rates | None] | None = None
        self._failed = False
        self._latest: RatesView | None = None
        self._last_reported: RatesView | None = None
        self.reported: Mapping[str, object] | None = None
        """The rates that are reported to the service. Each change makes a new object. None before the first
        measurement."""
        self._tell(self._kept())

    def measuring(self, backend: Backend) -> Iterator[None]:
        """Measure the rates that are not known yet, a short step at a time, while no other slot of this machine
        measures. A call goes on with the step that an earlier call has begun. After an error, which is logged, nothing
        is measured any more."""
        steps = self._steps = self._steps or measure(backend)
        while self._latest is None and self._folder is not None and not self._failed:
            self._tell(self._kept())
            if self._latest is not None or self._died_lately():
                return
            try:
                with self._turn() as mine:
                    rates = next(steps) if mine else None
            except Exception as error:  # any error may come from the device, and jobs run without rates, too
                log.warning("rates not measured", error=str(error))
                self._failed = True
                return
            if rates is not None:
                measured = RatesView.model_validate(asdict(rates))
                self._keep(measured)
                self._tell(measured)
                log.info("rates measured", **measured.model_dump())
            yield

    def learn(self, spec: TaskSpec, result: Mapping[str, Any]) -> None:
        """Adjust the rates by the time of a job that succeeded."""
        if self._latest is None or self._last_reported is None or not isinstance(spec, ReduceSpec):
            return
        if any(source.upload_id is not None for _, source in spec.sources()):
            return  # such a job waited for its sender, so its time is no rate
        speed = _speed(spec, result)
        name = {"host": "read_gb_per_s", "made": "generate_gb_per_s"}.get(spec.work().lies)
        if speed is None or name is None:
            return
        known: float = getattr(self._latest, name)
        if speed < _SLOWEST * known:
            return
        self._latest = self._latest.model_copy(update={name: known + _WEIGHT * (speed - known)})
        before: float = getattr(self._last_reported, name)
        if abs(getattr(self._latest, name) - before) > _NEWS * before:
            self._keep(self._latest)
            self._tell(self._latest)

    def _tell(self, rates: RatesView | None) -> None:
        self._latest = self._last_reported = rates
        self.reported = None if rates is None else rates.model_dump(mode="json")

    def _kept(self) -> RatesView | None:
        if self._folder is None:
            return None
        try:
            return RatesView.model_validate_json((self._folder / f"{self._name}.json").read_bytes())
        except (OSError, ValidationError):  # there is no file yet, or it is of another version
            return None

    def _keep(self, rates: RatesView) -> None:
        if self._folder is not None:
            with suppress(OSError):  # without a file the rates are measured again after the next start
                draft = self._folder / f"{self._name}.draft"
                draft.write_text(rates.model_dump_json(), encoding="utf-8")
                draft.rename(self._folder / f"{self._name}.json")

    @property
    def _mark(self) -> Path:
        """A file that exists while this slot measures. It stays if the child dies meanwhile."""
        assert self._folder is not None, "nothing is measured without a folder"
        return self._folder / f"{self._name}.measuring"

    def _died_lately(self) -> bool:
        try:
            return abs(time.time() - self._mark.stat().st_mtime) < _AGAIN_S
        except OSError:
            return False

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        """Whether it is this slot's turn to measure, because one slot of a machine measures at a time."""
        assert self._folder is not None, "nothing is measured without a folder"
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "turn.lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            self._mark.touch()
            try:
                yield True
            finally:
                self._mark.unlink(missing_ok=True)


def _speed(spec: ReduceSpec, result: Mapping[str, Any]) -> float | None:
    """The GB/s of an exact sum of many float64, including the copy to the device; None for other reductions, and for
    elements that were decoded."""
    timings = result["timings"]
    stages: Mapping[str, Any] = timings["stages"]
    alike = spec.op == "sum" and result["dtype"] == "float64" and result["strategy"] == EXACT
    if not alike or spec.grouping() is not None or "decode" in stages or "reduce" not in stages:
        return None
    nbytes, seconds = stages["reduce"]["bytes"], (timings["load_ms"] + timings["kernel_ms"]) / 1e3
    return nbytes / seconds / 1e9 if nbytes >= _LEAST_BYTES and seconds > 0 else None
