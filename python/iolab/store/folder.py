"""A directory that is opened once, and files in it that are replaced whole.

Names are looked up in the opened directory, never by the path again. A file is written under a
random name that nobody could have taken before (``O_EXCL``, ``O_NOFOLLOW``) and then renamed, so
that a link that somebody has put where a file shall be is replaced, not followed. Where nothing
was, the name is taken by link(2), which fails where rename(2) would replace what came meanwhile.

Whoever could not read a file cannot read what replaces it: its mode stays, and its owner where that
is possible. Left out: access control lists.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from iolab.errors import IolabError, RefusedError
from iolab.frozen import frozen
from iolab.store.owner import give_descriptor, invoking_user, refuse_distrusted, trusted_users

_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o644
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class OutputError(IolabError):
    """A file of a directory could not be read or written."""


def _close_like(fd: int, status: os.stat_result) -> None:
    """Give an empty draft the owner, if possible, and the mode of what it replaces."""
    mode = stat.S_IMODE(status.st_mode) & 0o777
    if status.st_uid in trusted_users():
        with suppress(OSError):
            os.fchown(fd, status.st_uid, status.st_gid)
    now = os.fstat(fd)
    if now.st_gid != status.st_gid:  # Another group may do what everybody may.
        mode &= ~0o070 | (mode & 0o007) << 3
    if now.st_uid != status.st_uid:
        mode |= stat.S_IRUSR | stat.S_IWUSR
    os.fchmod(fd, mode)


@frozen
class Folder:
    """An opened directory."""

    path: Path
    fd: int

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Generator[Self]:
        """Open a directory that exists.

        Raises
        ------
        OSError : there is none.
        RefusedError : this is root, and somebody else may change the directory.
        """
        refuse_distrusted(path)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.geteuid() == 0 and os.fstat(fd).st_uid not in trusted_users():
                raise RefusedError(f"{path} was replaced meanwhile", "see who writes there")
            yield cls(path, fd)
        finally:
            os.close(fd)

    def status(self, name: str) -> os.stat_result | None:
        """Status of the file with that name, a link as a link; None if nothing has."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read(self, name: str, size_max: int) -> bytes:
        """Content of a regular file.

        Raises
        ------
        OSError : there is none, or it cannot be read.
        OutputError : it is larger, or no regular file.
        """
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=self.fd)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > size_max:
                raise OutputError(f"{self.path / name} is no file of the expected size")
            return file.read(size_max)

    def replace(self, name: str, content: bytes) -> os.stat_result:
        """Write a file whole and give it its name; returns what it is then.

        Raises
        ------
        OSError : it cannot be written; nothing has changed.
        """
        with self.written(name, content) as (_, draft):
            os.rename(draft, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def create(self, name: str, content: bytes) -> os.stat_result:
        """Write a file whole under a name that nothing has; returns what it is then.

        Raises
        ------
        FileExistsError : something has the name; it is as it was.
        OSError : it cannot be written.
        """
        with self.written(name, content) as (_, draft):
            try:
                os.link(draft, name, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
                os.unlink(draft, dir_fd=self.fd)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                self._create_in_place(name, content)
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def give_name(self, draft: str, name: str, *, may_replace: bool) -> os.stat_result:
        """Let a draft that has been written have its name; returns what it is then.

        Raises
        ------
        FileExistsError : something has the name and may not be replaced; it is as it was.
        OSError : the file system refuses.
        """
        if not may_replace:
            try:
                os.link(draft, name, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
                return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
            if self.status(name) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        os.rename(draft, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def _create_in_place(self, name: str, content: bytes) -> None:
        """The same where the file system has no second names (FAT): a reader may see half of it."""
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, _MODE, dir_fd=self.fd)
        with os.fdopen(fd, "wb") as file:
            give_descriptor(fd, invoking_user())
            file.write(content)

    @contextmanager
    def written(self, name: str, content: bytes) -> Generator[tuple[int, str]]:
        """A draft with its content, as little open to others as what has the name now."""
        with self.draft(name) as (fd, draft):
            status = self.status(name)
            if status is not None and stat.S_ISREG(status.st_mode):
                _close_like(fd, status)
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(content)
            yield fd, draft

    @contextmanager
    def draft(self, name: str) -> Generator[tuple[int, str]]:
        """A new file under a random name, the user's; removed at the end if it still has that."""
        draft = f".{name}.{os.urandom(8).hex()}"
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, _MODE, dir_fd=self.fd)
        try:
            give_descriptor(fd, invoking_user())
            yield fd, draft
        finally:
            os.close(fd)
            with suppress(OSError):
                os.unlink(draft, dir_fd=self.fd)
