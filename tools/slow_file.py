"""Serve one file, `data`, that takes as long as a disk would; for tools/record_dispatch.py.

Mounted on the folder given (tools/one_file.py); it ends when that is unmounted. Service times are
those of tests/golden/dispatch/README.md: one head, first come first served, seek 0.8 ms + 9.2 ms *
sqrt(distance / size), a 120 Hz angle with 1 MiB per track, 120 MB/s, everything times 0.2. The
contents lie in memory and are lost at the end. With a second argument every request takes so many
nanoseconds instead, wherever it lies: a device whose time per operation is known.
"""

from __future__ import annotations

import math
import mmap
import sys
import time
from typing import Final

from one_file import serve

SIZE: Final = 512 << 20
SCALE: Final = 0.2
TURN_NS: Final = SCALE * 1e9 / 120
TRACK: Final = 1 << 20
NS_PER_BYTE: Final = SCALE * 1e9 / 120e6

_SPIN_NS: Final = 150_000


class Disk:
    """One head over the file's bytes."""

    def __init__(self) -> None:
        """Put the head at the beginning."""
        self.size = SIZE
        self.data = mmap.mmap(-1, SIZE)
        self.head = 0

    def serve(self, offset: int, length: int) -> None:
        """Wait as long as the disk needs."""
        start = time.monotonic_ns()
        total = length * NS_PER_BYTE
        if offset != self.head:
            distance = abs(offset - self.head) / SIZE
            seek = SCALE * (0.8e6 + 9.2e6 * math.sqrt(distance))
            angle = (start + seek) / TURN_NS
            ahead = offset % TRACK / TRACK - angle
            total += seek + TURN_NS * (ahead - math.floor(ahead))
        self.head = offset + length
        end = start + total
        left = end - time.monotonic_ns() - _SPIN_NS
        if left > 0:
            time.sleep(left / 1e9)
        while time.monotonic_ns() < end:
            pass

    def read(self, offset: int, length: int) -> bytes:
        """Bytes, after the time that they take."""
        self.serve(offset, length)
        return self.data[offset : offset + length]

    def write(self, offset: int, data: bytes) -> int:
        """Bytes moved, after the time that they take."""
        self.serve(offset, len(data))
        self.data[offset : offset + len(data)] = data
        return len(data)

    def fsync(self) -> int:
        """Nothing to wait for: the disk has no cache."""
        return 0


class EvenDisk(Disk):
    """Every request takes the same time."""

    def __init__(self, request_ns: int) -> None:
        """A disk of `request_ns` per request."""
        super().__init__()
        self.request_ns = request_ns

    def serve(self, offset: int, length: int) -> None:
        """Wait as long as each request does."""
        del offset, length
        time.sleep(self.request_ns / 1e9)


if __name__ == "__main__":
    disk = EvenDisk(int(sys.argv[2])) if len(sys.argv) > 2 else Disk()
    serve(sys.argv[1], b"iolab-slow", disk)
