import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordedLaunch, _pack


def test_arguments_lie_in_memory_as_the_driver_reads_them() -> None:
    array = SimpleNamespace(data=SimpleNamespace(ptr=0x7F0000001000))
    packed = _pack([array, np.uint64(12), np.uint32(7), np.float64(0.5)])
    table = (ctypes.c_void_p * 4).from_address(packed.address)

    def at(index: int, size: int) -> bytes:
        return ctypes.string_at(table[index] or 0, size)

    assert int.from_bytes(at(0, 8), sys.byteorder) == 0x7F0000001000
    assert int.from_bytes(at(1, 8), sys.byteorder) == 12
    assert int.from_bytes(at(2, 4), sys.byteorder) == 7
    assert np.frombuffer(at(3, 8))[0] == 0.5


def test_launches_aside_follow_the_stream_and_the_stream_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, object]] = []

    class Event:
        def __init__(self, *, disable_timing: bool) -> None:
            assert disable_timing

        def record(self, stream: Any) -> None:
            done.append(("record", stream.ptr))

    def stream(name: str) -> Any:
        return SimpleNamespace(ptr=name, wait_event=lambda event: done.append(("wait", name)))

    driver = SimpleNamespace(launchKernel=lambda *args: done.append((args[0], args[-3])))
    module = ModuleType("cupy.cuda")
    module.__dict__.update(driver=driver, Event=Event)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", module)
    gpu: Any = SimpleNamespace(stream=stream("stream"), side=stream("side"))

    def launch(name: str, *, aside: bool) -> RecordedLaunch:
        function = SimpleNamespace(kernel=SimpleNamespace(ptr=name))
        kernel: Any = SimpleNamespace(function=function, blocks_per_multiprocessor=lambda block, shared: 1)
        return RecordedLaunch(kernel, 1, 32, (np.uint32(1),), 0, False, aside)

    prepared = Prepared(gpu, [launch("first", aside=False), launch("giant", aside=True), launch("small", aside=False)])
    prepared.start()
    assert done == [
        ("first", "stream"),
        *(("record", "stream"), ("wait", "side"), ("giant", "side")),
        ("small", "stream"),
        *(("record", "side"), ("wait", "stream")),
    ]
