"""Content of a tree: kind, mode, owner, target or content of everything, nothing followed."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def listing(root: Path) -> dict[str, str]:
    """Path to description of `root` and everything below it on the same file system."""
    device = os.lstat(root).st_dev
    return {str(path): text for path, text in _walk(root, device)}


def _walk(path: Path, device: int) -> Iterator[tuple[Path, str]]:
    try:
        found = os.lstat(path)
        owner = f"{found.st_uid}:{found.st_gid}"
        yield path, f"{stat.filemode(found.st_mode)} {owner} {_content(path, found)}"
        if stat.S_ISDIR(found.st_mode) and found.st_dev == device:
            for below in sorted(path.iterdir()):
                yield from _walk(below, device)
    except FileNotFoundError:
        return


def _content(path: Path, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return f"-> {path.readlink()}"
    if stat.S_ISREG(found.st_mode):
        state = (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size)
        return _digest(path, state)
    return ""


@functools.cache
def _digest(path: Path, state: tuple[int, ...]) -> str:
    """Digest of a file; nobody can change a file and not the time of its change (ctime)."""
    del state
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Differences, one line each."""
    return [
        f"{path}: {before.get(path, 'nothing')} => {after.get(path, 'nothing')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
