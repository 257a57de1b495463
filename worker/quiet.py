"""Whether a child that says nothing still computes."""

from warpfold.worker.child_process import Child


class Quiet:
    """How long a child has sent nothing while its parent listened, and whether it used its processor in the second
    half."""

    def __init__(self, child: Child, allowed_s: float) -> None:
        self._child = child
        self._allowed_s = allowed_s
        self._quiet_s = 0.0
        self._used_by_half: float | None = None

    def note(self, heard: bool, seconds: float) -> None:
        """The parent listened for `seconds`, and heard something or nothing."""
        if heard:
            self._quiet_s, self._used_by_half = 0.0, None
            return
        self._quiet_s += seconds
        if self._used_by_half is None and self._quiet_s >= self._allowed_s / 2:
            self._used_by_half = self._child.used_s()

    @property
    def too_long(self) -> bool:
        """Whether the child was silent for too long. One that computes, so that its pulse may be late, gets half of the
        time again."""
        if self._quiet_s < self._allowed_s:
            return False
        used = self._child.used_s()
        if used == self._used_by_half:
            return True
        self._quiet_s, self._used_by_half = self._allowed_s / 2, used
        return False
