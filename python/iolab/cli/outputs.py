"""Which results directory a study gets, and whether what lies there may be continued."""

from __future__ import annotations

import contextlib
import difflib
import itertools
from pathlib import Path
from typing import Final

from iolab.errors import StoreError, StudyError
from iolab.store.db import STORE_NAME, Store
from iolab.study.plan import Plan
from iolab.study.render import spec_toml

OUTPUT_ROOT: Final = Path("iolab-out")
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


def check_free(out_dir: Path) -> None:
    """Refuse a directory that already holds a study.

    Raises
    ------
    StudyError : it does; says how to go on.
    """
    database = out_dir / STORE_NAME
    if not database.exists():
        if out_dir.exists() and not out_dir.is_dir():
            raise StudyError(f"{out_dir} is not a directory", "choose another --out")
        return
    with Store.open_reader(database) as store:
        name = store.study.name
    raise StudyError(
        f"{out_dir} already holds the study '{name}'",
        "continue it with --resume, or choose another --out",
    )


def discard(database: Path) -> None:
    """Remove a closed store in which nothing was recorded, and its directory if that was all."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        database.parent.rmdir()


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
