"""A process that is supervised: it stays, resists a request to end, says something and ends, or never
stops to write lines of 99 bytes."""

import itertools
import os
import signal
import sys
import time


def main() -> int:
    word = sys.argv[1]
    if word == "speak":
        print("output")
        print("error", file=sys.stderr)
        return 0
    if word == "resist":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
    if word == "chatter":
        for number in itertools.count():
            os.write(2, b"%09d %s\n" % (number, b"z" * 89))
    time.sleep(60)
    return 1
