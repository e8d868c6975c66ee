"""Everything that is not mallory's, before and after: in the namespace, and the real machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .arena import ALICE, HOMES, Arena
from .listing import changes, listing

TREES = ("/usr/local", "/etc", f"{HOMES}/{ALICE}", "/var/lib/iolab", "/var/tmp", "/tmp", "/run")
"""Looked at in full. `/usr/local` has the decoys and the agent, `/etc` sudo's rules."""
NAMES_ONLY = ("/", "/dev", "/usr/bin", "/usr/sbin", "/var", "/srv", "/mnt", "/opt")
"""Of these only what is in them: they are the machine's own."""
REAL = ("/etc", "/usr/local/libexec", "/var/lib/iolab", "/run/iolab")
"""Of the real machine, outside the namespace."""
_OTHERS = ("loop", "/dev/pts", "/dev/ptmx")
"""Paths that other programs make meanwhile."""
_SUDOS = "/run/sudo"
"""Directory in which sudo notes the users that it has asked for a password."""


def guarded(arena: Arena, leaving_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Description of all that an attack could want to change."""
    found: dict[str, str] = {}
    prefix = str(arena.inside("/")).rstrip("/")
    for tree in TREES:
        found |= {path.removeprefix(prefix): text for path, text in _tree(arena.inside(tree))}
    for folder in NAMES_ONLY:
        inside = arena.inside(folder)
        names = sorted(path.name for path in inside.iterdir()) if inside.is_dir() else []
        kept = [name for name in names if not name.startswith(_OTHERS)]
        found[f"names in {folder}"] = " ".join(kept)
    return {
        path: text for path, text in found.items() if not path.startswith((*leaving_out, _SUDOS))
    }


def real_machine() -> dict[str, str]:
    """Description of the real directories that the namespace covers."""
    found: dict[str, str] = {}
    for tree in REAL[:2]:
        found |= dict(_tree(Path(tree)))
    return found


@contextmanager
def nothing_changes(arena: Arena, leaving_out: tuple[str, ...] = ()) -> Iterator[None]:
    """Fail if anything that is guarded is another when the block ends."""
    before = guarded(arena, leaving_out)
    yield
    changed = changes(before, guarded(arena, leaving_out))
    assert not changed, "changed: " + "; ".join(changed)


def _tree(root: Path) -> list[tuple[str, str]]:
    return list(listing(root).items()) if root.exists() else []
