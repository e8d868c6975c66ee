"""Files that iolab made where the user said: a list of marks in the user's state directory.

A mark is device, inode, size and the times of the last change. A file that was copied, edited or
touched since has another one, and is the user's. A file that is being written has no mark yet: it
is known by its birth, so that one which is left where all of iolab was killed is not foreign to the
next start. Nobody can tell then who wrote to it last, but a copy, or another file of that name, has
another birth.

The list is a convenience: what is not in it, or if it is damaged or cannot be written, is taken for
the user's own.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from iolab.frozen import frozen
from iolab.store.folder import Folder, OutputError

if TYPE_CHECKING:
    from iolab.protocol import FileBirth, FileMark

LIST_NAME: Final = "made"
_SYSTEM_STATE: Final = Path("/var/lib/iolab")
_ENTRIES_MAX: Final = 20_000
"""A job of fio may have 16384 files."""
_BYTES_MAX: Final = 8 << 20
_MARK_FIELDS: Final = 5
_BIRTH_FIELDS: Final = 3

Numbers = list[int]
"""Fields of the `Mark` or the `Birth` of a file, told apart by how many there are.

A list has thousands of entries, of which a command asks about a few.
"""


@frozen
class Mark:
    """A file as it was when iolab had closed it."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Mark of a file as it is now."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    @classmethod
    def of_path(cls, path: Path) -> Self | None:
        """Mark of a regular file, None if nothing or something else has the name."""
        with suppress(OSError):
            status = path.lstat()
            return cls.of(status) if stat.S_ISREG(status.st_mode) else None
        return None

    def numbers(self) -> Numbers:
        """As the list has it."""
        return [self.device, self.inode, self.size_bytes, self.modified_ns, self.changed_ns]

    def to_dict(self) -> FileMark:
        """As the agent's protocol has it."""
        return {
            "device": self.device,
            "inode": self.inode,
            "size_bytes": self.size_bytes,
            "modified_ns": self.modified_ns,
            "changed_ns": self.changed_ns,
        }


@frozen
class Birth:
    """A file since it was made; only the agent, which knows statx(2), compares the instant."""

    device: int
    inode: int
    born_ns: int

    def numbers(self) -> Numbers:
        """As the list has it."""
        return [self.device, self.inode, self.born_ns]

    def to_dict(self) -> FileBirth:
        """As the agent's protocol has it."""
        return {"device": self.device, "inode": self.inode, "born_ns": self.born_ns}

    def is_of(self, status: os.stat_result) -> bool:
        """Tell whether a file may be this one: its inode may have had another file before."""
        return (self.device, self.inode) == (status.st_dev, status.st_ino)


def state_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Directory of this user's lists; root's place is the system's, whatever the environment
    says.
    """
    if os.geteuid() == 0:
        return _SYSTEM_STATE
    for name, below in (("XDG_STATE_HOME", ""), ("HOME", ".local/state")):
        base = Path(environment.get(name, ""))
        if base.is_absolute():
            return base / below / "iolab"
    return None


def is_made(status: os.stat_result) -> bool:
    """Tell whether iolab made a file and nobody has changed it since."""
    return tuple(Mark.of(status).numbers()) in _marks(_content())


def was_made(path: Path) -> bool:
    """Tell whether iolab made the file of this name, whoever has changed it since."""
    numbers, mark = _read().get(str(Path.cwd() / path)), Mark.of_path(path)
    return numbers is not None and mark is not None and numbers[:2] == mark.numbers()[:2]


def birth_of(path: Path) -> Birth | None:
    """Birth of a file that a killed run had begun to write under this name, if it may be there."""
    numbers = _read().get(str(Path.cwd() / path))
    if numbers is None or len(numbers) != _BIRTH_FIELDS:
        return None
    return Birth(*numbers) if _holds(str(path), numbers) else None


def begin(files: Mapping[Path, Birth]) -> None:
    """Note files that are being written from now on, in as little time as possible."""
    place = state_directory()
    if place is None:
        return
    text = "".join(_line(str(Path.cwd() / path), birth.numbers()) for path, birth in files.items())
    with suppress(OSError, OutputError):
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        with Folder.opened(place) as folder:
            fcntl.flock(folder.fd, fcntl.LOCK_EX)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(LIST_NAME, flags, 0o644, dir_fd=folder.fd)
            with os.fdopen(fd, "wb") as file:
                file.write(text.encode())


def note_study(database: Path) -> None:
    """Note a study that chooses files of the user's as begun by this user."""
    with suppress(OSError):
        status = database.lstat()
        remember({_whole(database): Birth(status.st_dev, status.st_ino, 0)})


def is_own_study(database: Path) -> bool:
    """Tell whether this user began the study that lies there; a copy of it is another's."""
    return birth_of(_whole(database)) is not None


def _whole(path: Path) -> Path:
    return path.parent.resolve() / path.name


def remember(files: Mapping[Path, Mark | Birth], ended: Iterable[Path] = ()) -> None:
    """Note files that were just made; entries of files that are gone or changed are dropped.

    The files of a run that has `ended` are not being written any more. A list that cannot be
    written is no reason to fail: the files count as the user's own then.
    """
    place = state_directory()
    over = {str(Path.cwd() / path) for path in ended}
    if not (files or over) or place is None:
        return
    with suppress(OSError, OutputError):
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        with Folder.opened(place) as folder:
            fcntl.flock(folder.fd, fcntl.LOCK_EX)  # Another iolab may be adding its own.
            known = {
                path: numbers
                for path, numbers in _read().items()
                if _holds(path, numbers) and not (len(numbers) == _BIRTH_FIELDS and path in over)
            }
            added = {str(Path.cwd() / path): entry.numbers() for path, entry in files.items()}
            lines = [_line(path, numbers) for path, numbers in ({**known, **added}).items()]
            folder.replace(LIST_NAME, "".join(lines[-_ENTRIES_MAX:]).encode())


def _holds(path: str, numbers: Numbers) -> bool:
    """Tell whether the file of this name is, or may be, the one that the numbers are of."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    if len(numbers) == _BIRTH_FIELDS:
        return Birth(*numbers).is_of(status)
    return stat.S_ISREG(status.st_mode) and Mark.of(status).numbers() == numbers


def _line(path: str, numbers: Numbers) -> str:
    return json.dumps([*numbers, path]) + "\n"


def _read() -> Mapping[str, Numbers]:
    """The list as far as it can be understood; one that others may write is none."""
    return _understood(_content())


def _content() -> bytes:
    """The list; read again only if it was changed, for a job may ask about thousands of files."""
    place = state_directory()
    if place is not None:
        with suppress(OSError, OutputError):
            status = (place / LIST_NAME).lstat()
            return _content_of(place, (status.st_ino, status.st_size, status.st_ctime_ns))
    return b""


@lru_cache(maxsize=1)
def _content_of(place: Path, _: tuple[int, ...]) -> bytes:
    with Folder.opened(place) as folder:
        return folder.read(LIST_NAME, _BYTES_MAX)


@lru_cache(maxsize=1)
def _marks(content: bytes) -> frozenset[tuple[int, ...]]:
    return frozenset(map(tuple, _understood(content).values()))


@lru_cache(maxsize=1)
def _understood(content: bytes) -> Mapping[str, Numbers]:
    lines = content.splitlines()
    try:  # All at once, which takes less time than one by one.
        rows = json.loads(b"[%b]" % b",".join(lines))
    except ValueError:
        rows = []
    if len(rows) != len(lines):
        rows = list[object]()
        for line in lines:
            with suppress(ValueError):
                rows.append(json.loads(line))
    found = dict[str, Numbers]()
    for row in rows:
        if type(row) is not list or len(row) not in (_MARK_FIELDS + 1, _BIRTH_FIELDS + 1):
            continue
        *numbers, path = row
        if type(path) is str and {*map(type, numbers)} == {int}:
            found[path] = numbers
    return found
