"""Owner of a directory: files made under sudo go to who typed it, and root writes in no stranger's.

The user behind sudo is that of ``SUDO_UID`` and ``SUDO_GID``.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from iolab.errors import RefusedError


def invoking_user(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """(uid, gid) of the user behind sudo; None if this process is not root through sudo."""
    if os.geteuid() != 0:
        return None
    try:
        uid, gid = int(environment["SUDO_UID"]), int(environment["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (uid, gid) if uid != 0 else None


def trusted_users() -> set[int]:
    """Users that may own what this process writes: itself, root, and the user behind sudo."""
    user = invoking_user()
    return {os.geteuid(), os.getuid(), 0, *((user[0],) if user else ())}


def distrusted(path: Path) -> str | None:
    """Reason why root must not write in `path`, in words; None if it may, or if this is not root.

    Who may change a directory can lead whoever writes in it elsewhere: by a link of the right
    name, or by renaming what lies above it. A directory that does not exist yet is judged by those
    above it, in which a sticky bit keeps others from what is not theirs.
    """
    if os.geteuid() != 0:
        return None
    whole = Path(os.path.realpath(path))
    for folder in (whole, *whole.parents):
        with suppress(FileNotFoundError, NotADirectoryError):
            reason = _strangers(folder.stat(), is_above=folder != whole)
            if reason:
                return f"{folder} {reason}"
    return None


def _strangers(status: os.stat_result, *, is_above: bool) -> str | None:
    user = invoking_user()
    if status.st_uid not in trusted_users():
        return f"belongs to {_name(status.st_uid)}"
    if is_above and status.st_mode & stat.S_ISVTX:
        return None
    owners = {0: 0} | ({user[1]: user[0]} if user else {})
    group = status.st_gid
    is_private = group in owners and _is_private(group, owners[group])
    is_open = status.st_mode & stat.S_IWGRP and not is_private
    return "may be written by others" if is_open or status.st_mode & stat.S_IWOTH else None


def _is_private(gid: int, uid: int) -> bool:
    """Tell whether a group is one user's alone: it bears the user's name and lists nobody else.

    Many systems give every user such a group, and directories that it may write; others put all
    users into one (`users`, `staff`). That another user has it as the primary group, with another
    name, is not looked for: it would mean to read the list of all users.
    """
    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(uid).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def refuse_distrusted(path: Path, flag: str = "--out") -> None:
    """Refuse, as root, to write where somebody else could lead it astray.

    Parameters
    ----------
    path : a directory.
    flag : what names it, for the advice.

    Raises
    ------
    RefusedError : see `distrusted`.
    """
    reason = distrusted(path)
    if reason is not None:
        raise RefusedError(
            f"{reason}: root writes nothing there, because a link could lead it to any file",
            f"run it as that user, or choose a directory of your own with {flag}",
        )


def give_to_user(*paths: Path) -> None:
    """Hand what this process made to the user behind sudo; does nothing otherwise.

    Only files with one name and directories that belong to root are given away, through an opened
    descriptor: what a link points at stays as it is.
    """
    user = invoking_user()
    if user is None:
        return
    for path in paths:
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                give_descriptor(fd, user)
            finally:
                os.close(fd)


def give_descriptor(fd: int, user: tuple[int, int] | None) -> None:
    """Hand an open file or directory of root's to `user`, if there is one."""
    status = os.fstat(fd)
    is_file = stat.S_ISREG(status.st_mode) and status.st_nlink <= 1
    if user is not None and status.st_uid == 0 and (is_file or stat.S_ISDIR(status.st_mode)):
        os.fchown(fd, *user)


def make_directories(path: Path) -> list[Path]:
    """Create `path` and its missing parents, all owned by the user behind sudo.

    Returns those that were missing, the innermost first.

    Raises
    ------
    RefusedError : something else has the name; or this is root, and somebody else may change the
        directory.
    """
    refuse_distrusted(path)
    if os.path.lexists(path) and not path.is_dir():
        kind = "a symbolic link that leads to no directory" if path.is_symlink() else "no directory"
        raise RefusedError(f"{path} is {kind}: it was left as it is", "name another directory")
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    give_to_user(*missing)
    return missing


def remove_directories(made: Iterable[Path]) -> None:
    """Remove what `make_directories` made, as far as it is empty."""
    with suppress(OSError):
        for folder in made:
            folder.rmdir()
