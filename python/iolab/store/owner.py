"""Files made under sudo belong to the user who typed it (``SUDO_UID``, ``SUDO_GID``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path


def invoking_user(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """(uid, gid) of the user behind sudo; None if this process is not root through sudo."""
    if os.geteuid() != 0:
        return None
    try:
        uid, gid = int(environment["SUDO_UID"]), int(environment["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (uid, gid) if uid != 0 else None


def give_to_user(*paths: Path) -> None:
    """Hand `paths` to the user behind sudo; does nothing otherwise."""
    user = invoking_user()
    if user is None:
        return
    for path in paths:
        if path.exists():
            os.chown(path, *user, follow_symlinks=False)


def make_directories(path: Path) -> list[Path]:
    """Create `path` and its missing parents, all owned by the user behind sudo.

    Returns those that were missing, the innermost first.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    give_to_user(*missing)
    return missing


def remove_directories(made: Iterable[Path]) -> None:
    """Remove what `make_directories` made, as far as it is empty."""
    with suppress(OSError):
        for folder in made:
            folder.rmdir()
