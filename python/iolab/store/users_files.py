"""One rule for every file that iolab writes where the user said (safety R6).

What is there already is replaced only if iolab made it and nobody has changed it since, or if the
user named it with ``--overwrite``. All files of a step are judged before the first is written.

Two records say what iolab made. Results directories carry the digests of what was written in them
(`LIST_NAME`, as sha256sum(1) reads it), so that they may be copied, moved and given away. Any other
file is known by its mark in the user's state directory (`iolab.store.created_files`).
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from iolab.digest import sha256
from iolab.errors import IolabError, RefusedError, StoreError
from iolab.frozen import frozen
from iolab.regular_file import refuse_among_devices
from iolab.store import created_files
from iolab.store.folder import Folder, OutputError
from iolab.store.owner import make_directories

REPORT_FILES: Final = ("report.html", "report.xlsx", "verdict.json")
"""Names of the files of a report, beside its study."""
LIST_NAME: Final = ".iolab-made"
FLAG: Final = "--overwrite"
_LIST_BYTES_MAX: Final = 1 << 16
_OUTPUT_BYTES_MAX: Final = 1 << 30
_NAMES_SHOWN: Final = 8
_DIGESTS_MAX: Final = 2
"""Of a name: what lies there, and what is being written over it."""


@frozen
class Allowed:
    """Files that the user named: they may be replaced, whoever made them."""

    paths: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, names: Iterable[str]) -> Allowed:
        """Files that ``--overwrite`` named, as often as it was given."""
        return cls(frozenset(map(_resolved, names)))

    def has(self, path: Path) -> bool:
        """Tell whether the user named this file."""
        return bool(self.paths) and _resolved(path) in self.paths

    def refuse_useless(self, written: Iterable[Path]) -> None:
        """Refuse a name that allows nothing: the user expects of it what will not happen.

        `written` are all files that the command may write under the rule.

        Raises
        ------
        IolabError : a file that the user named is none of them.
        """
        if not self.paths:
            return
        names = {_resolved(path): path for path in written}
        for path in sorted(self.paths - set(names)):
            listed = ", ".join(map(str, list(names.values())[:_NAMES_SHOWN])) or "none"
            raise IolabError(
                f"{FLAG} {path}: this command does not write that file",
                f"name what it writes ({listed}), or leave {FLAG} out",
            )


NOTHING: Final = Allowed()


def _resolved(path: str | Path) -> Path:
    """The file's own name in the directory that it really lies in."""
    whole = Path.cwd() / path
    return whole.parent.resolve() / whole.name


def refused(path: Path) -> RefusedError:
    """Error for a file that is not iolab's, or is not as iolab left it."""
    is_changed = created_files.was_made(path)
    state = "was changed since iolab made it" if is_changed else "was not made by iolab"
    return RefusedError(
        f"{path} exists and {state}: it was left as it is",
        f"choose another name, or allow it with {FLAG} {path}",
    )


def refuse_linked(path: Path, status: os.stat_result) -> None:
    """Refuse to write in place into a file that has other names, of which nobody was asked.

    Raises
    ------
    RefusedError : it has more than one name.
    """
    if status.st_nlink > 1:
        raise RefusedError(
            f"{path} has {status.st_nlink} names (hard links), and this would be written into the"
            " file that all of them share: it was left as it is",
            "name a file of its own",
        )


def refuse_special(path: Path, status: os.stat_result) -> None:
    """Refuse what is no regular file, whoever named it.

    Raises
    ------
    RefusedError : it is a link, a directory, a device or something else.
    """
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a directory",
        stat.S_IFBLK: "a device",
        stat.S_IFCHR: "a device",
    }
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise RefusedError(
            f"{path} is {kinds.get(kind, 'not a regular file')}: it was left as it is",
            "name a file of its own",
        )


def is_replaceable(path: Path, status: os.stat_result, allowed: Allowed) -> bool:
    """Tell whether a file outside of results directories may be replaced or written."""
    refuse_special(path, status)
    return (
        allowed.has(path)
        or created_files.is_made(status)
        or created_files.birth_of(path) is not None
    )


def refuse_foreign(paths: Iterable[Path], allowed: Allowed) -> None:
    """Refuse if one of the files is the user's own.

    Raises
    ------
    RefusedError : see the rule; nothing was touched.
    """
    asked = list(paths)
    for path, status in _there(asked):
        if not is_replaceable(path, status, allowed):
            raise refused(path)
    for directory in dict.fromkeys(path.parent for path in asked if not path.exists()):
        refuse_among_devices(directory)


def _there(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Those of the files that exist."""
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = path.lstat()
            yield path, status


def write_file(path: Path, content: bytes, allowed: Allowed) -> None:
    """Write a file of the user's choice, under the rule, and remember it.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    OSError : it cannot be written.
    """
    with Folder.opened(path.parent) as folder:
        status = folder.status(path.name)
        if status is not None and not is_replaceable(path, status, allowed):
            raise refused(path)
        mark = created_files.Mark.of(_put(folder, path, content, is_there=status is not None))
    created_files.remember({path: mark})


def _put(folder: Folder, path: Path, content: bytes, *, is_there: bool) -> os.stat_result:
    """Replace what was judged; where nothing was, take only a name that is still free."""
    if is_there:
        return folder.replace(path.name, content)
    try:
        return folder.create(path.name, content)
    except FileExistsError:
        raise refused(path) from None


def append_file(path: Path, text: str, allowed: Allowed) -> None:
    """Append to a file that iolab made, or make it.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    OSError : it cannot be written.
    """
    with Folder.opened(path.parent) as folder:
        status = folder.status(path.name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        flags |= os.O_CREAT | os.O_EXCL if status is None else 0
        fd = os.open(path.name, flags, 0o644, dir_fd=folder.fd)
        with os.fdopen(fd, "ab") as file:
            if status is not None and not is_replaceable(path, os.fstat(fd), allowed):
                raise refused(path)
            refuse_linked(path, os.fstat(fd))
            file.write(text.encode())
        status = folder.status(path.name)
        if status is not None:
            created_files.remember({path: created_files.Mark.of(status)})


def write_new(files: Mapping[Path, bytes], allowed: Allowed) -> None:
    """Write files of which none is there yet, or which the user named.

    Raises
    ------
    RefusedError : one is there.
    OSError : one cannot be written.
    """
    refuse_existing(files, allowed)
    for path, content in files.items():
        with Folder.opened(path.parent) as folder:
            _put(folder, path, content, is_there=allowed.has(path))


@contextmanager
def opened_new(path: Path, allowed: Allowed) -> Generator[BinaryIO]:
    """Open a file for a long content; it gets its name only when all of that is written.

    Raises
    ------
    RefusedError : something has the name, and the user did not name it.
    OSError : it cannot be written; nothing is left.
    """
    refuse_existing([path], allowed)
    with Folder.opened(path.parent) as folder, folder.draft(path.name) as (fd, draft):
        with os.fdopen(fd, "wb", closefd=False) as file:
            yield file
        try:
            folder.give_name(draft, path.name, may_replace=allowed.has(path))
        except FileExistsError:
            raise refused(path) from None


class Filling:
    """A file that another process fills."""

    def __init__(self, folder: Folder, path: Path, draft: str) -> None:
        self._folder, self._path, self._draft = folder, path, draft
        status = folder.status(draft)
        assert status is not None, "it was just made"
        self.status = status

    @property
    def path(self) -> Path:
        """Present path, free of links."""
        return self._path.parent.resolve() / self._draft

    def begin(self) -> None:
        """Give it its name: there is something to keep from now on.

        Raises
        ------
        OSError : the name cannot be taken.
        """
        if self._draft != self._path.name:
            self._folder.give_name(self._draft, self._path.name, may_replace=True)
            self._draft = self._path.name

    def is_there(self) -> bool:
        """Tell whether the name still leads to it."""
        now = self._folder.status(self._path.name)
        return now is not None and os.path.samestat(now, self.status)


@contextmanager
def filled_elsewhere(path: Path, allowed: Allowed) -> Generator[Filling]:
    """Make an empty file for another process to fill; nothing is left of one that stays empty.

    It has its name from the beginning, unless that belongs to a file that is to be replaced: this
    one stays as it is until `Filling.begin`.

    Raises
    ------
    RefusedError : something has the name, and the user did not name it.
    OSError : it cannot be made.
    """
    refuse_existing([path], allowed)
    with Folder.opened(path.parent) as folder:
        if folder.status(path.name) is not None:
            with folder.written(path.name, b"") as (_, draft):
                yield Filling(folder, path, draft)
            return
        try:
            made = folder.create(path.name, b"")
        except FileExistsError:
            raise refused(path) from None
        try:
            yield Filling(folder, path, path.name)
        finally:
            removed_if_empty(path, made)


@contextmanager
def opened_replacing(path: Path, allowed: Allowed) -> Generator[BinaryIO]:
    """Open a file of the user's choice for a long content, under the rule, and remember it.

    It gets its name only when all of that is written.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    OSError : it cannot be written; nothing is left.
    """
    with Folder.opened(path.parent) as folder, folder.draft(path.name) as (fd, draft):
        with os.fdopen(fd, "wb", closefd=False) as file:
            yield file
        status = folder.status(path.name)
        if status is not None and not is_replaceable(path, status, allowed):
            raise refused(path)
        try:
            made = folder.give_name(draft, path.name, may_replace=status is not None)
        except FileExistsError:
            raise refused(path) from None
        if status is None:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder.fd)
            made = folder.status(path.name) or made
    created_files.remember({path: created_files.Mark.of(made)})


def made_empty(path: Path, allowed: Allowed) -> os.stat_result:
    """Make an empty file for another process to fill, which has its name from the beginning.

    Raises
    ------
    RefusedError : something has the name, and the user did not name it.
    OSError : it cannot be made.
    """
    refuse_existing([path], allowed)
    with Folder.opened(path.parent) as folder:
        if allowed.has(path):
            return folder.replace(path.name, b"")
        try:
            return folder.create(path.name, b"")
        except FileExistsError:
            raise refused(path) from None


def removed_if_empty(path: Path, made: os.stat_result) -> bool:
    """Remove a file of `made_empty` that nobody has filled; whether it is gone."""
    with suppress(OSError), Folder.opened(path.parent) as folder:
        now = folder.status(path.name)
        if now is not None and os.path.samestat(now, made) and now.st_size == 0:
            os.unlink(path.name, dir_fd=folder.fd)
            return True
    return False


def refuse_existing(paths: Iterable[Path], allowed: Allowed) -> None:
    """Refuse if one of the files is there and was not named, even if iolab made it.

    `paths` are all that the command writes.

    Raises
    ------
    RefusedError : it is.
    IolabError : another file was named.
    """
    paths = list(paths)
    allowed.refuse_useless(paths)
    for path, status in _there(paths):
        refuse_special(path, status)
        if not allowed.has(path):
            raise RefusedError(
                f"{path} exists already", f"name another, or allow it with {FLAG} {path}"
            )


# Results directories.


def refuse_foreign_results(directory: Path, names: Sequence[str], allowed: Allowed) -> None:
    """Refuse if one of these files of a results directory is the user's own.

    Raises
    ------
    RefusedError : see the rule; nothing was touched.
    """
    if directory.is_dir():
        with Folder.opened(directory) as folder:
            _judge(folder, names, allowed)


def _judge(folder: Folder, names: Sequence[str], allowed: Allowed) -> dict[str, list[str]]:
    """Digests that are known of each name; refuses what is the user's."""
    known = _digests(folder)
    for name in names:
        status, path = folder.status(name), folder.path / name
        if status is None:
            continue
        refuse_special(path, status)
        is_ours = allowed.has(path) or (
            name in known and _digest(folder.read(name, _OUTPUT_BYTES_MAX)) in known[name]
        )
        if not is_ours:
            raise refused(path)
        known[name] = [_digest(folder.read(name, _OUTPUT_BYTES_MAX))]
    return known


def write_results(directory: Path, contents: Mapping[str, bytes], allowed: Allowed) -> None:
    """Write files of a results directory, all or none, under the rule.

    Raises
    ------
    RefusedError : one is the user's own; nothing was touched.
    OSError : one cannot be written.
    """
    make_directories(directory)
    with Folder.opened(directory) as folder:
        with suppress(OSError):  # Some network file systems cannot; two at once are rare.
            fcntl.flock(folder.fd, fcntl.LOCK_EX)
        try:
            known = _judge(folder, list(contents), allowed)
        except OutputError as error:
            raise StoreError(str(error), "remove it, or choose another --out") from None
        # First, so that a kill between the two makes nobody's file of what was written.
        folder.replace(LIST_NAME, _listed(contents, known))
        for name, content in contents.items():
            folder.replace(name, content)


def list_of(contents: Mapping[str, bytes]) -> bytes:
    """The list of a results directory that is filled at once."""
    return _listed(contents, {})


def _listed(contents: Mapping[str, bytes], known: Mapping[str, list[str]]) -> bytes:
    digests = {name: list(values) for name, values in known.items()}
    for name, content in contents.items():
        digest = _digest(content)
        before = [value for value in digests.get(name, []) if value != digest]
        digests[name] = [*before, digest][-_DIGESTS_MAX:]
    lines = [f"{digest}  {name}\n" for name, values in digests.items() for digest in values]
    return "".join(lines).encode()


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _digests(folder: Folder) -> dict[str, list[str]]:
    """Content of the list; one that is damaged or no file says nothing."""
    found = dict[str, list[str]]()
    with suppress(OSError, OutputError, UnicodeDecodeError):
        for line in folder.read(LIST_NAME, _LIST_BYTES_MAX).decode().splitlines():
            digest, _, name = line.partition("  ")
            if len(digest) == sha256().digest_size * 2 and name:
                found.setdefault(name, []).append(digest)
    return found
