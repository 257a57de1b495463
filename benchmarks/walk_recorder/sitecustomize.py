"""Notes every function of a checkout at its first call in a process and a phase, for `benchmarks/walk.py`.

Python imports a module of this name when it starts, from wherever PYTHONPATH finds one.
"""

import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

_LOOK_EVERY_S = 0.05


class Recorder:
    """Appends lines to a file of its own for each process: `phase file function`, and `phase made class` for each data
    class of which an object was made."""

    def __init__(self, folder: Path, root: str) -> None:
        self._folder = folder
        self._root = root
        self._phase = "start"
        self._seen: set[CodeType] = set()
        self._look_again = 0.0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if time.monotonic() >= self._look_again:
            self._look()
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        self._seen.add(code)
        if code.co_filename == "<string>" and code.co_name == "__init__":  # made by `dataclass`
            made = type(frame.f_locals.get("self"))
            if made.__module__.startswith("warpfold."):
                self._note("made", f"{made.__module__.removeprefix('warpfold.')}.{made.__qualname__}")
            return
        if code.co_filename.startswith("<"):  # made at run time, or frozen into Python
            return
        # The package's links below src/ and the folders themselves are the same files.
        place = os.path.realpath(code.co_filename)
        if place.startswith(f"{self._root}/") and "/.venv/" not in place:
            self._note(place.removeprefix(f"{self._root}/"), code.co_qualname)

    def _note(self, file: str, name: str) -> None:
        with (self._folder / f"calls-{os.getpid()}").open("a", encoding="utf-8") as lines:
            lines.write(f"{self._phase}\t{file}\t{name}\n")

    def _look(self) -> None:
        """Begin anew if the file `phase` names another phase. A thread that looked would not outlive a fork, and a
        process with threads is not forked."""
        self._look_again = time.monotonic() + _LOOK_EVERY_S
        try:
            phase = (self._folder / "phase").read_text(encoding="utf-8")
        except OSError:  # there is none yet, or the walk is over
            return
        if phase != self._phase:
            self._phase = phase
            self._seen = set()


if "WALK_FOLDER" in os.environ:
    _record = Recorder(Path(os.environ["WALK_FOLDER"]), os.environ["WALK_ROOT"])
    threading.setprofile(_record)
    sys.setprofile(_record)
