"""A wall clock that a machine of the drill has for itself. Linux has namespaces for the clocks that count from a boot,
and none for the wall clock; so a small library, loaded before all others, answers for the kernel.

It needs a compiler of C; without one the clocks of the drill are right.
"""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const double right = 0;
static const volatile double *ahead_s = &right;

/* Take the seconds by which this clock is ahead from a file that holds a double, as long as the process lives. */
int warpfold_clock_from(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 1;
    void *mapped = mmap(0, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return 1;
    ahead_s = mapped;
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DRILL_CLOCK");
    if (path) warpfold_clock_from(path);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*kernels)(clockid_t, struct timespec *);
    if (!kernels) kernels = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = kernels(which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += (time_t)*ahead_s;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


def compiled(folder: Path) -> Path | None:
    """The library, made in `folder`; None where no compiler makes it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE)
    made = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], capture_output=True, check=False
    )
    return library if made.returncode == 0 else None


class Clock:
    """The wall clock of a machine, in a file that all its processes have mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(struct.pack("d", 0.0))

    def step(self, ahead_s: float) -> None:
        """Set the clock to the right time and `ahead_s` seconds more, whole ones."""
        with self.path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as mapped:
            mapped[:] = struct.pack("d", ahead_s)
