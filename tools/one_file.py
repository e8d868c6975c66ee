"""A file system in user space with one file, `data`: FUSE 7.31 over /dev/fuse, without libraries.

What the file does is the caller's: a model of a disk (tools/slow_file.py), or one that fails
(tests/e2e/faulty_disk.py). Needs root. Left out: everything that no loop device asks of its file.
Source: Linux include/uapi/linux/fuse.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Final, Protocol

WRITE_MAX: Final = 1 << 20

_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _WRITE, _STATFS = 1, 2, 3, 14, 15, 16, 17
_RELEASE, _FSYNC, _FLUSH, _INIT, _OPENDIR, _RELEASEDIR = 18, 20, 25, 26, 27, 29
_DESTROY, _BATCH_FORGET = 38, 42
_SILENT: Final = (_FORGET, _BATCH_FORGET)
_HEADER: Final = struct.Struct("<IIQQIIII")
_DIRECT_IO: Final = 1
_PAGE: Final = 4096


class OneFile(Protocol):
    """Database behind the file."""

    @property
    def size(self) -> int:
        """Bytes of the file; never changes."""
        ...

    def read(self, offset: int, length: int) -> bytes | int:
        """Bytes inside the file, or an errno."""
        ...

    def write(self, offset: int, data: bytes) -> int:
        """Bytes moved, or a negative errno."""
        ...

    def fsync(self) -> int:
        """0, or an errno."""
        ...


def _attributes(node: int, size: int) -> bytes:
    mode, size = (0o040755, 0) if node == 1 else (0o100600, size)
    return struct.pack(
        "<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, _PAGE, 0
    )


def _answer(file: OneFile, opcode: int, node: int, body: bytes) -> bytes | int:
    """Return the body of the answer, or an errno."""
    if opcode == _INIT:
        flags = 1 | 1 << 5 | 1 << 22
        return struct.pack("<4I2H2I2HI28x", 7, 31, 0, flags, 16, 12, WRITE_MAX, 1, 256, 0, 0)
    if opcode == _LOOKUP:
        if body.rstrip(b"\0") != b"data":
            return errno.ENOENT
        return struct.pack("<4Q2I", 2, 0, 3600, 3600, 0, 0) + _attributes(2, file.size)
    if opcode == _GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + _attributes(node, file.size)
    if opcode in (_OPEN, _OPENDIR):
        return struct.pack("<QIi", 0, _DIRECT_IO if opcode == _OPEN else 0, 0)
    if opcode == _READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        return file.read(offset, min(length, file.size - offset))
    if opcode == _WRITE:
        _, offset, length = struct.unpack_from("<QQI", body)
        moved = file.write(offset, body[40 : 40 + length])
        return -moved if moved < 0 else struct.pack("<II", moved, 0)
    if opcode == _FSYNC:
        return file.fsync() or b""
    if opcode == _STATFS:
        return struct.pack("<5Q4I24x", file.size // _PAGE, 0, 0, 1, 0, _PAGE, 255, _PAGE, 0)
    if opcode in (_RELEASE, _RELEASEDIR, _FLUSH, _DESTROY):
        return b""
    return errno.ENOSYS


def serve(folder: str, source: bytes, file: OneFile) -> None:
    """Mount `file` on `folder` as `source` and serve it until it is unmounted."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source, folder.encode(), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount", folder)
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
        answer = _answer(file, opcode, node, request[_HEADER.size :])
        if opcode in _SILENT:
            continue
        status, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.writev(device, [struct.pack("<IiQ", 16 + len(body), status, unique), body])
