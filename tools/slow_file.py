"""Serve one file, `data`, that takes as long as a disk would; for tools/record_dispatch.py.

A file system in user space (FUSE, protocol 7.31 over /dev/fuse) mounted on the folder given; it
ends when that is unmounted. Service times are those of tests/golden/dispatch/README.md: one head,
first come first served, seek 0.8 ms + 9.2 ms * sqrt(distance / size), a 120 Hz angle with 1 MiB per
track, 120 MB/s, everything times 0.2. The contents lie in memory and are lost at the end.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import struct
import sys
import time
from typing import Final

SIZE: Final = 512 << 20
SCALE: Final = 0.2
TURN_NS: Final = SCALE * 1e9 / 120
TRACK: Final = 1 << 20
NS_PER_BYTE: Final = SCALE * 1e9 / 120e6
WRITE_MAX: Final = 1 << 20

_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _WRITE, _STATFS = 1, 2, 3, 14, 15, 16, 17
_RELEASE, _FSYNC, _FLUSH, _INIT, _OPENDIR, _RELEASEDIR = 18, 20, 25, 26, 27, 29
_DESTROY, _BATCH_FORGET = 38, 42
_SILENT: Final = (_FORGET, _BATCH_FORGET)
_HEADER: Final = struct.Struct("<IIQQIIII")
_DIRECT_IO: Final = 1
_SPIN_NS: Final = 150_000


class Disk:
    """One head over the file's bytes."""

    def __init__(self) -> None:
        """Put the head at the beginning."""
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


def _attributes(node: int) -> bytes:
    mode, size = (0o040755, 0) if node == 1 else (0o100600, SIZE)
    return struct.pack(
        "<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
    )


def _answer(disk: Disk, opcode: int, node: int, body: bytes) -> bytes | int:
    """Return the body of the answer, or an errno."""
    if opcode == _INIT:
        flags = 1 | 1 << 5 | 1 << 22
        return struct.pack("<4I2H2I2HI28x", 7, 31, 0, flags, 16, 12, WRITE_MAX, 1, 256, 0, 0)
    if opcode == _LOOKUP:
        if body.rstrip(b"\0") != b"data":
            return errno.ENOENT
        return struct.pack("<4Q2I", 2, 0, 3600, 3600, 0, 0) + _attributes(2)
    if opcode == _GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + _attributes(node)
    if opcode in (_OPEN, _OPENDIR):
        return struct.pack("<QIi", 0, _DIRECT_IO if opcode == _OPEN else 0, 0)
    if opcode == _READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        length = min(length, SIZE - offset)
        disk.serve(offset, length)
        return disk.data[offset : offset + length]
    if opcode == _WRITE:
        _, offset, length = struct.unpack_from("<QQI", body)
        disk.serve(offset, length)
        disk.data[offset : offset + length] = body[40 : 40 + length]
        return struct.pack("<II", length, 0)
    if opcode == _STATFS:
        return struct.pack("<5Q4I24x", SIZE // 4096, 0, 0, 1, 0, 4096, 255, 4096, 0)
    if opcode in (_RELEASE, _RELEASEDIR, _FLUSH, _FSYNC, _DESTROY):
        return b""
    return errno.ENOSYS


def main() -> None:
    """Mount, serve until unmounted."""
    folder = sys.argv[1]
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"iolab-slow", folder.encode(), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount", folder)
    disk = Disk()
    while True:
        try:
            request = os.read(device, WRITE_MAX + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            raise
        _, opcode, unique, node, *_ = _HEADER.unpack_from(request)
        answer = _answer(disk, opcode, node, request[_HEADER.size :])
        if opcode in _SILENT:
            continue
        status, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.writev(device, [struct.pack("<IiQ", 16 + len(body), status, unique), body])


if __name__ == "__main__":
    main()
