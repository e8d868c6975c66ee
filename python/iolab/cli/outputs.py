"""Which results directory a study gets, and whether what lies there may be continued."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iolab import units
from iolab.errors import StoreError, StudyError
from iolab.store.db import STORE_NAME, Store
from iolab.store.lock import WriterLock
from iolab.store.owner import remove_directories
from iolab.study.plan import Plan
from iolab.study.render import spec_toml

OUTPUT_ROOT: Final = Path("iolab-out")
OUT_BYTES_MIN: Final = 4 << 20
"""A small study with its reports; who has less cannot store one."""
_DIFFERENCES_SHOWN: Final = 4
_OPEN_KEYS: Final = ("rounds", "budget")


def fresh_directory(name: str, root: Path = OUTPUT_ROOT) -> Path:
    """First ``NAME-N`` that does not exist."""
    return next(
        candidate
        for number in itertools.count(1)
        if not (candidate := root / f"{name}-{number}").exists()
    )


def latest_directory(name: str, root: Path = OUTPUT_ROOT) -> Path:
    """Newest ``NAME-N`` that holds a study.

    Raises
    ------
    StudyError : there is none.
    """
    found = [path.parent for path in root.glob(f"{name}-*/{STORE_NAME}")]
    numbered = [path for path in found if path.name.removeprefix(f"{name}-").isdecimal()]
    if not numbered:
        raise StudyError(
            f"there is nothing to resume: no {root}/{name}-N holds a study",
            "run it without --resume, or name the directory with --out",
        )
    return max(numbered, key=lambda path: int(path.name.removeprefix(f"{name}-")))


def stored_seed(database: Path) -> int:
    """Seed of a stored study."""
    with Store.open_reader(database) as store:
        return store.study.seed


def existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def check_free(out_dir: Path) -> None:
    """Refuse a directory that already holds a study, or cannot hold one.

    Raises
    ------
    StudyError : it does, or cannot; says how to go on.
    StoreError : another process is writing one there.
    """
    database = out_dir / STORE_NAME
    if not database.exists():
        folder = existing(out_dir)
        if not folder.is_dir():
            raise StudyError(f"{folder} is not a directory", "choose another --out")
        _check_room(folder, out_dir)
        return
    WriterLock(database).refuse_if_held()
    with Store.open_reader(database) as store:
        name = store.study.name
    raise StudyError(
        f"{out_dir} already holds the study '{name}'",
        "continue it with --resume, or choose another --out",
    )


def _check_room(existing: Path, out_dir: Path) -> None:
    status = os.statvfs(existing)
    free = status.f_bavail * status.f_frsize
    if free < OUT_BYTES_MIN:
        raise StudyError(
            f"{out_dir} cannot hold a study: {units.format_bytes_rounded(free)} are free there, "
            f"the smallest needs {units.format_bytes_rounded(OUT_BYTES_MIN)}",
            "make room, or choose another --out",
        )


def missing_directories(out_dir: Path) -> list[Path]:
    """What would have to be made for `out_dir`, the innermost first."""
    return [folder for folder in (out_dir, *out_dir.parents) if not folder.exists()]


def discard(database: Path, made: Sequence[Path]) -> None:
    """Remove a closed store in which nothing was recorded, and the directories made for it."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    remove_directories(made)


def check_same_plan(store: Store, plan: Plan) -> None:
    """Refuse to continue another study than the stored one.

    Raises
    ------
    StoreError : the plans differ; shows where.
    """
    if store.study.plan_digest == plan.digest:
        return
    changes = [
        line
        for line in difflib.ndiff(
            store.study.spec_toml.splitlines(), spec_toml(plan.study).splitlines()
        )
        if line[:2] in ("- ", "+ ") and not line[2:].startswith(_OPEN_KEYS)
    ]
    shown = "; ".join(
        ("stored " if line[0] == "-" else "asked ") + line[2:]
        for line in changes[:_DIFFERENCES_SHOWN]
    )
    more = (
        f"; and {len(changes) - _DIFFERENCES_SHOWN} more"
        if len(changes) > _DIFFERENCES_SHOWN
        else ""
    )
    raise StoreError(
        f"{store.path.parent} holds another plan ({shown or 'other design'}{more})",
        "resume with the same study, or choose another --out",
    )
