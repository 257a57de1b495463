"""The network between the machines of the drill: a process that carries their packets, late, and loses some.

`tc netem` does the same within the kernel, but is a module that many kernels do not have, those of virtual machines for
continuous integration among them. What is carried are whole IP packets, so that all that TCP does about a loss, it does
here: retransmissions, timeouts that double, connections that are dead without knowing.
"""

import heapq
import json
import os
import random
import select
import socket
import time
from dataclasses import dataclass, field
from typing import Any

_LONGEST_PACKET = 65536


@dataclass
class Wire:
    """Carries packets between files of interfaces. `delay_s` is for each packet, so that an answer takes twice that."""

    control: socket.socket
    files: dict[str, int] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    delay_s: float = 0.0
    loss: float = 0.0
    carried: int = 0
    lost: int = 0
    _due: list[tuple[float, int, str, bytes]] = field(default_factory=list)
    _chance: random.Random = field(default_factory=random.Random)

    def run(self) -> None:
        """Carry until the other end of `control` is closed."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        while True:
            wait_ms = None if not self._due else max(0.0, (self._due[0][0] - time.monotonic()) * 1000)
            for number, what in poll.poll(wait_ms):
                if number != self.control.fileno():
                    self._take(number, poll, what)
                elif not self._obey(poll):
                    return
            self._deliver()

    def _take(self, number: int, poll: select.poll, what: int) -> None:
        try:
            packet = os.read(number, _LONGEST_PACKET) if what & select.POLLIN else b""
        except OSError:
            packet = b""
        if not packet:
            self._forget(number, poll)
            return
        if packet[0] >> 4 != 4:
            return  # an interface that comes up asks for its neighbours by IPv6
        source, target = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
        if source in self.cut or target in self.cut or self._chance.random() < self.loss:
            self.lost += 1
        else:
            heapq.heappush(self._due, (time.monotonic() + self.delay_s, self.carried, target, packet))
            self.carried += 1

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._due)
            if target in self.files and target not in self.cut:
                try:
                    os.write(self.files[target], packet)
                except OSError:
                    self.lost += 1  # the machine is gone

    def _forget(self, number: int, poll: select.poll) -> None:
        """The machine is gone."""
        poll.unregister(number)
        os.close(number)
        self.files = {address: file for address, file in self.files.items() if file != number}

    def _obey(self, poll: select.poll) -> bool:
        message, files, _, _ = socket.recv_fds(self.control, 1 << 16, 1)
        if not message:
            return False
        order: dict[str, Any] = json.loads(message)
        if "join" in order:
            before = self.files.get(order["join"])
            if before is not None:
                self._forget(before, poll)
            self.files[order["join"]] = files[0]
            poll.register(files[0], select.POLLIN)
        self.cut = set(order.get("cut", self.cut))
        self.delay_s = order.get("delay_s", self.delay_s)
        self.loss = order.get("loss", self.loss)
        self.control.send(json.dumps({"carried": self.carried, "lost": self.lost}).encode())
        return True
