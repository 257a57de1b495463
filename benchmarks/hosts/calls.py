"""The calls of Linux behind the machines of the drill: namespaces, mounts, and network interfaces whose packets a
program carries. They need root, and `why_not` says what else is missing.

Python 3.11 has neither `unshare` nor `setns`, and a machine of continuous integration may have no iproute2.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Where Python finds these modules."""

_LIBC = ctypes.CDLL(None, use_errno=True)

NEWNS, NEWUTS, NEWPID, NEWNET = 0x00020000, 0x04000000, 0x20000000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000

_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8913, 0x8914, 0x8916, 0x891C
_IFF_UP = 0x1
_WIRE = b"wire0"


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(flags: int) -> None:
    """Give this process, or its children in the case of NEWPID, namespaces of its own. Raises OSError."""
    _checked(_LIBC.unshare(flags))


def mount(kind: str, target: Path, options: str = "") -> None:
    """Mount a file system of no device, such as `tmpfs` or `proc`. Raises OSError."""
    _checked(_LIBC.mount(kind.encode(), str(target).encode(), kind.encode(), 0, options.encode()))


def keep_mounts_private() -> None:
    """What this process mounts in a mount namespace of its own does not show in the others."""
    _checked(_LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))


@contextmanager
def inside_network(pid: int) -> Iterator[None]:
    """Within the block, this thread and those that it starts make their sockets in the network of process `pid`."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _checked(_LIBC.setns(other, NEWNET))
        try:
            yield
        finally:
            _checked(_LIBC.setns(own, NEWNET))
    finally:
        os.close(own)
        os.close(other)


def make_wire(address: str) -> int:
    """An interface of this network namespace with `address` in a network of 256; returns the file from which the
    packets are read that leave by it, and to which those are written that arrive. Raises OSError."""
    wire = os.open(_TUN, os.O_RDWR)
    fcntl.ioctl(wire, _TUNSETIFF, struct.pack("16sH22x", _WIRE, _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, "255.255.255.0")):
            packed = struct.pack("16sHH4s8x", _WIRE, socket.AF_INET, 0, socket.inet_aton(value))
            fcntl.ioctl(control, request, packed)
        for name in (_WIRE, b"lo"):
            _bring_up(control, name)
    return wire


def _bring_up(control: socket.socket, name: bytes) -> None:
    asked = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))
    flags = struct.unpack_from("H", asked, 16)[0]
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, flags | _IFF_UP))


def why_not() -> str | None:
    """Why this process may not make machines of namespaces; None where it may."""
    if os.getuid() != 0:
        return "namespaces with addresses of their own need root"
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return f"{_TUN} cannot be opened, so no program can carry packets between namespaces"
    words = [sys.executable, "-m", "benchmarks.hosts.calls"]
    tried = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    return None if tried.returncode == 0 else "this machine does not allow new namespaces"


if __name__ == "__main__":
    unshare(NEWNET | NEWNS | NEWUTS | NEWPID)
    keep_mounts_private()
    make_wire("10.77.0.1")
