"""Results directory of a study, and conditions for continuing what lies there."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iolab import units
from iolab.errors import IolabError, RefusedError, StoreError, StudyError
from iolab.pattern import pattern
from iolab.run.options import OUTPUT_ROOT
from iolab.store.continuing import way_on
from iolab.store.db import STORE_NAME, Store
from iolab.store.lock import WriterLock, wait_for_survivor
from iolab.store.log import SIDE_SUFFIXES, size_of
from iolab.store.owner import distrusted, refuse_distrusted, remove_directories
from iolab.store.rows import StudyRow
from iolab.store.users_files import LIST_NAME, REPORT_FILES, Allowed, refuse_foreign_results
from iolab.study.plan import Plan, make_plan
from iolab.study.recordings import check_same_recordings
from iolab.study.render import spec_toml

OUT_BYTES_MIN: Final = 4 << 20
"""A small study with its reports; who has less cannot store one."""
_LEFT_BY_START: Final = pattern(
    rf"{re.escape(STORE_NAME)}\.lock|{re.escape(LIST_NAME)}|"
    rf"\.{re.escape(STORE_NAME)}\.[0-9a-f]{{16}}({'|'.join(SIDE_SUFFIXES)})?"
)
"""Leftovers of a killed start of a study in its directory: a draft with a random name."""
_DIFFERENCES_SHOWN: Final = 4
_OPEN_KEYS: Final = ("rounds", "budget")


def fresh_directory(name: str, root: Path = OUTPUT_ROOT) -> Path:
    """First ``NAME-N`` that does not exist."""
    try:
        with os.scandir(root) as entries:
            taken = {entry.name for entry in entries}
    except OSError:
        taken = set[str]()
    names = (f"{name}-{number}" for number in itertools.count(1))
    return root / next(candidate for candidate in names if candidate not in taken)


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


def check_begun(out_dir: Path) -> None:
    """Refuse to continue what was never begun, or was stopped before there was anything to keep.

    What measured for a start that was killed is waited for.

    Raises
    ------
    StudyError : there is no study in the directory; says how to begin it.
    StoreError : what measured is still at work.
    """
    if not (out_dir / STORE_NAME).is_file():
        raise StudyError(
            f"there is nothing to resume: there is no study in {out_dir} (no {STORE_NAME})",
            "begin it with the same command without --resume, or name the directory that --out "
            "made",
        )
    wait_for_survivor(out_dir / STORE_NAME)


def existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def reports_in(out_dir: Path) -> list[Path]:
    """Files that a report of a study writes."""
    return [out_dir / name for name in REPORT_FILES]


def check_free(out_dir: Path) -> None:
    """Refuse a directory that already holds a study or somebody's files, or cannot hold one.

    Raises
    ------
    StudyError : it does, or cannot; says how to go on.
    RefusedError : it holds files that are not iolab's, or root could be led astray in it.
    StoreError : another process is writing one there.
    """
    database = out_dir / STORE_NAME
    if not database.exists():
        folder = existing(out_dir)
        if not folder.is_dir():
            raise StudyError(f"{folder} is not a directory", "choose another --out")
        refuse_distrusted(out_dir)
        _refuse_filled(out_dir)
        _check_room(folder, out_dir)
        return
    WriterLock(database).refuse_if_held()
    with Store.open_reader(database) as store:
        study, statuses = store.study, store.finished_trials()
        hint = way_on(study, out_dir, statuses, store.contents.n_trials())
    raise StudyError(f"{out_dir} already holds the study '{study.name}'", hint)


def _refuse_filled(out_dir: Path) -> None:
    """Refuse a directory in which somebody else's files lie: results get one of their own."""
    if out_dir.is_dir():
        others = sorted(path.name for path in out_dir.iterdir() if not _is_left_by_start(path))
        if others:
            raise RefusedError(
                f"{out_dir} holds {others[0]} already, and no study",
                "name a new directory, or an empty one, with --out",
            )


def _is_left_by_start(path: Path) -> bool:
    """Tell if a file is iolab's own although no study is there: side files only if they are empty.

    One that is not may hold the newest records of a study whose database is gone.
    """
    is_side = path.name in {STORE_NAME + suffix for suffix in SIDE_SUFFIXES}
    return _LEFT_BY_START.fullmatch(path.name) is not None or (is_side and size_of(path) == 0)


def check_place_of_report(
    directory: Path, allowed: Allowed, *, database: Path | None = None
) -> None:
    """Refuse to draw the study of `database` into a directory that holds other things.

    Raises
    ------
    RefusedError : it holds another study, or a report that the user changed; or it is not empty,
        and iolab wrote no report there.
    """
    if not directory.is_dir() or distrusted(directory) is not None:
        return  # What root may not write is told after the answer.
    is_own = database is not None and database.parent.resolve() == directory.resolve()
    if (directory / STORE_NAME).exists() and not is_own:
        raise RefusedError(
            f"{directory} holds a study: the report of another does not belong there",
            "name a new directory, or an empty one, with --out",
        )
    is_known = is_own or (directory / LIST_NAME).exists()
    named = any((directory / name) in allowed.paths for name in REPORT_FILES)
    if not is_known and not named:
        _refuse_filled(directory)
    refuse_foreign_results(directory, REPORT_FILES, allowed)


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
    """Directories that would have to be made for `out_dir`, the innermost first."""
    return [folder for folder in (out_dir, *out_dir.parents) if not folder.exists()]


def discard(database: Path, made: Sequence[Path]) -> None:
    """Remove a closed store in which nothing was recorded, and the directories made for it."""
    for suffix in ("-wal", "-shm", "", ".lock"):  # Killed here, no log is left to another study.
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    remove_directories(made)


def _digest_today(study: StudyRow) -> str:
    """Identity of a stored plan as this program writes it; an older one wrote other words."""
    from iolab.study.load import parse_study

    try:
        asked = parse_study(study.spec_toml)
        return make_plan(asked).digest if asked.seed is not None else ""
    except IolabError:
        return ""


def _by_words(changes: list[str]) -> list[str]:
    """The changed lines of a study; of a command that differs, the words that do."""
    import shlex
    import tomllib

    told = {line[0]: line[2:] for line in changes if line[2:].startswith('command = "')}
    rest = [line for line in changes if not line[2:].startswith("command = ")]
    if told.keys() != {"-", "+"}:
        return rest or changes
    words = {sign: shlex.split(str(tomllib.loads(text)["command"])) for sign, text in told.items()}
    differing = list[str]()
    for sign, other in (("-", "+"), ("+", "-")):
        own = [word for word in words[sign] if word not in words[other]]
        differing.append(f"{sign} {shlex.join(own) or 'nothing'}")
    if all(line.endswith(" nothing") for line in differing):
        differing = ["+ the words in another order"]
    return [*differing, *rest]


def check_same_plan(store: Store, plan: Plan) -> None:
    """Refuse to continue another study than the stored one.

    Raises
    ------
    StoreError : the plans differ; shows where.
    StudyError : they differ by a recording that is another one now; names it.
    """
    if plan.digest in (store.study.plan_digest, _digest_today(store.study)):
        return
    check_same_recordings(store.study.spec_toml, plan.study.workloads)
    import difflib

    changes = [
        line
        for line in difflib.ndiff(
            store.study.spec_toml.splitlines(), spec_toml(plan.study).splitlines()
        )
        if line[:2] in ("- ", "+ ") and not line[2:].startswith(_OPEN_KEYS)
    ]
    changes = _by_words(changes)
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
