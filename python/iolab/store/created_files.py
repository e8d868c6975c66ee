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
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from iolab.frozen import frozen
from iolab.store.folder import Folder, OutputError

if TYPE_CHECKING:
    from iolab.protocol import FileBirth, FileMark

LIST_NAME: Final = "made"
_SYSTEM_STATE: Final = Path("/var/lib/iolab")
_ENTRIES_MAX: Final = 1000
_BYTES_MAX: Final = 8 << 20
_MARK_FIELDS: Final = 5
_BIRTH_FIELDS: Final = 3


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
    return Mark.of(status) in _read().values()


def birth_of(path: Path) -> Birth | None:
    """Birth of a file that a killed run had begun to write under this name, if it may be there."""
    entry = _read().get(Path.cwd() / path)
    with suppress(OSError):
        if isinstance(entry, Birth) and entry.is_of(path.lstat()):
            return entry
    return None


def begin(files: Mapping[Path, Birth]) -> None:
    """Note files that are being written from now on, in as little time as possible."""
    place = state_directory()
    if place is None:
        return
    text = "".join(_line(Path.cwd() / path, birth) for path, birth in files.items())
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
    over = {Path.cwd() / path for path in ended}
    if not (files or over) or place is None:
        return
    with suppress(OSError, OutputError):
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        with Folder.opened(place) as folder:
            fcntl.flock(folder.fd, fcntl.LOCK_EX)  # Another iolab may be adding its own.
            known = {
                path: entry
                for path, entry in _read().items()
                if _holds(path, entry) and not (isinstance(entry, Birth) and path in over)
            }
            added = {Path.cwd() / path: entry for path, entry in files.items()}
            lines = [_line(path, entry) for path, entry in ({**known, **added}).items()]
            folder.replace(LIST_NAME, "".join(lines[-_ENTRIES_MAX:]).encode())


def _holds(path: Path, entry: Mark | Birth) -> bool:
    if isinstance(entry, Mark):
        return Mark.of_path(path) == entry
    with suppress(OSError):
        return entry.is_of(path.lstat())
    return False


def _line(path: Path, entry: Mark | Birth) -> str:
    return json.dumps([*astuple(entry), str(path)]) + "\n"


def _read() -> dict[Path, Mark | Birth]:
    """The list as far as it can be understood; one that others may write is none."""
    place = state_directory()
    content = b""
    if place is not None:
        with suppress(OSError, OutputError), Folder.opened(place) as folder:
            content = folder.read(LIST_NAME, _BYTES_MAX)
    found = dict[Path, Mark | Birth]()
    for line in content.splitlines():
        with suppress(ValueError, TypeError):
            *numbers, path = json.loads(line)
            kind = {_MARK_FIELDS: Mark, _BIRTH_FIELDS: Birth}.get(len(numbers))
            if kind is not None and all(type(n) is int for n in numbers) and isinstance(path, str):
                found[Path(path)] = kind(*numbers)
    return found
