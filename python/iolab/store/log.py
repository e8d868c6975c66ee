"""The write-ahead log beside a study's database, judged before SQLite looks at it.

SQLite reads a log up to the first frame that is not right and drops what follows without a word.
That is the end of a write that a crash tore, or what an earlier generation of the log left, which
has other salts; but also a flipped bit, behind which committed records are lost. They are told
apart here, by the file format that SQLite documents, and nothing is ever changed.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from array import array
from pathlib import Path
from typing import BinaryIO, Final

from iolab.errors import RefusedError
from iolab.frozen import frozen

LOG: Final = "-wal"
JOURNAL: Final = "-journal"
SIDE_SUFFIXES: Final = (LOG, "-shm", JOURNAL)
"""Suffixes that SQLite adds to the database's name for files of its own."""

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC_LITTLE: Final = 0x377F0682
"""Checksums of little-endian words; the next number is that of big-endian ones."""
_VERSION: Final = 3007000
_PAGE_BYTES: Final = tuple(1 << power for power in range(9, 17))
_MASK: Final = 0xFFFFFFFF
_CHECKED_OF_HEADER: Final = 24
_CHECKED_OF_FRAME: Final = 8


@frozen
class Lost:
    """Part of a log that SQLite would not read any more."""

    what: str
    commits: int
    """Finished writes that follow the damage."""


def side_files(database: Path) -> tuple[Path, ...]:
    """SQLite's own files of a database, whether they are there or not."""
    return tuple(database.with_name(database.name + suffix) for suffix in SIDE_SUFFIXES)


def side_file(database: Path, suffix: str) -> Path:
    """One of them."""
    return database.with_name(database.name + suffix)


def size_of(path: Path) -> int:
    """Bytes of a file; nothing if it is not there."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def open_plain(path: Path) -> BinaryIO | None:
    """A regular file, opened to be read; None if nothing has the name.

    Raises
    ------
    RefusedError : it is a link or something else, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}", "copy it first") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RefusedError(f"{path} is not a regular file", "it is no study of iolab's")
    return os.fdopen(fd, "rb")


def read_log(database: Path) -> bytes:
    """Content of a database's log; nothing if there is none."""
    file = open_plain(side_file(database, LOG))
    if file is None:
        return b""
    with file:
        return file.read()


def lost_in(content: bytes) -> Lost | None:
    """Loss in a log, None if SQLite reads all that was committed in it.

    A log of which only the end is not right has lost nothing that can be seen: see the count that
    `iolab.store.lock` keeps.
    """
    if len(content) <= _HEADER.size:
        return None  # Nothing was written behind a header yet.
    magic, version, page_bytes, _, *salts, sum_0, sum_1 = _HEADER.unpack_from(content)
    is_known = magic & ~1 == _MAGIC_LITTLE and version == _VERSION and page_bytes in _PAGE_BYTES
    order = "big" if magic & 1 else "little"
    sums = (0, 0)
    if is_known:
        sums = _checksum(content[:_CHECKED_OF_HEADER], sums, order)
    if not is_known or sums != (sum_0, sum_1):
        return Lost("its first 32 bytes are not as they were written", 1 + sys.maxsize)
    frame_bytes = _FRAME.size + page_bytes
    starts = range(_HEADER.size, len(content) - frame_bytes + 1, frame_bytes)
    for number, start in enumerate(starts, start=1):
        page, _, *found = _FRAME.unpack_from(content, start)
        if page and found[:2] == salts:
            data = start + _FRAME.size
            sums = _checksum(content[start : start + _CHECKED_OF_FRAME], sums, order)
            sums = _checksum(content[data : data + page_bytes], sums, order)
        if not page or found != [*salts, *sums]:
            commits = _commits(content, starts[number:], salts)
            what = f"frame {number} of {len(starts)} is not as it was written"
            return Lost(what, commits) if commits else None
    return None


def _commits(content: bytes, starts: range, salts: list[int]) -> int:
    """Frames of this generation of the log that end a write."""
    frames = (_FRAME.unpack_from(content, start) for start in starts)
    return sum(1 for page, size, *found in frames if page and size and found[:2] == salts)


def _checksum(part: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """Go on with the two sums that SQLite keeps of the words of a log."""
    words = array("I", part)
    if order != sys.byteorder:
        words.byteswap()
    first, second = sums
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
