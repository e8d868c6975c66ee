"""Reading a stored study wherever it lies: a results directory, its database, an archive."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.errors import IolabError, StudyError
from iolab.frozen import replace
from iolab.library import calibrations
from iolab.store.continuing import command_again, file_word
from iolab.store.db import STORE_NAME, Store
from iolab.store.read import without_collecting
from iolab.store.rows import ByHand, StudyData
from iolab.study.load import parse_study
from iolab.study.recordings import RecordingError, is_place_here
from iolab.visible import visible_line

if TYPE_CHECKING:
    from iolab.archive.format import Manifest
    from iolab.archive.read import Inspection
    from iolab.library.archive_claims import Claims
    from iolab.study import model
    from iolab.study.source import Source


def find_database(path: Path) -> Path:
    """Database of a results directory, or the database itself.

    Raises
    ------
    IolabError : nothing is there.
    """
    if not path.exists():
        from iolab.library.output_root import OUTPUT_ROOT

        below = OUTPUT_ROOT / path
        remedy = "name the directory that --out made"
        if not path.is_absolute() and is_stored(below):
            remedy = f"you may mean {below}"
        elif stored := sorted(OUTPUT_ROOT.glob(f"*/{STORE_NAME}"), key=_changed):
            remedy = f"{remedy}; the newest in {OUTPUT_ROOT} is {stored[-1].parent}"
        raise IolabError(f"{path} does not exist", remedy)
    is_other = path.is_dir() or path.suffix != Path(STORE_NAME).suffix
    return path / STORE_NAME if is_other else path


def _changed(path: Path) -> float:
    """Time of the last change of a file; 0 of one that is gone meanwhile."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def is_archive(path: Path) -> bool:
    """Tell whether a path means an archive: a file that is no database.

    Raises
    ------
    IolabError : the file is something else.
    """
    if not path.is_file() or path.suffix == Path(STORE_NAME).suffix:
        return False
    from iolab.archive.read import may_be_archive

    if may_be_archive(path):
        return True
    raise IolabError(
        f"{path} is neither a study nor an archive", "name the directory that --out made"
    )


def directory_of(path: Path) -> Path | None:
    """Directory in which a stored study lies; None of an archive, which holds a copy."""
    return None if is_archive(path) else find_database(path).parent


def is_stored(path: Path) -> bool:
    """Tell whether a path means a stored study: its directory, its database or an archive."""
    from iolab.archive.format import SUFFIX

    is_file = path.is_file() and path.suffix in (Path(STORE_NAME).suffix, SUFFIX)
    return is_file or (path / STORE_NAME).is_file()


def stored_study(
    path: Path, overrides: Mapping[str, object], override_source: Source
) -> model.Study:
    """The study that is stored, to be run again or continued.

    Parameters
    ----------
    path : a results directory, its database or an archive.
    overrides : top-level keys that replace those of its study file.
    override_source : names the place of the overrides in messages.

    Raises
    ------
    StudyError : an imported table is stored there, of which nothing can be run; or the overrides
        do not fit.
    StoreError : it cannot be read.
    """
    with (
        unpacked(path) if is_archive(path) else nullcontext((find_database(path), None)) as found,
        Store.open_reader(found[0]) as store,
    ):
        study, manifest = store.study, found[1]
    if study.kind == "imported":
        raise StudyError(
            f"{path} holds an imported table, which nothing here has measured",
            f"`iolab report {shlex.quote(str(path))}` shows it; `{command_again(study)}` imports "
            "it again",
        )
    try:
        asked = parse_study(study.spec_toml, str(path), overrides, override_source=override_source)
    except RecordingError as error:
        raise _with_copy(error, path, manifest) from None
    if "rounds" in overrides or asked.rounds is None:
        return asked
    # Rounds that were added later stand in the plan only.
    return replace(asked, rounds=max(asked.rounds, study.rounds_planned))


def _with_copy(error: RecordingError, path: Path, manifest: Manifest | None) -> RecordingError:
    """The same error; its hint names the copy in the results, if there is one that is the same."""
    from iolab.run.core import load_core
    from iolab.run.kept_recordings import copy_of, is_copy

    directory, recording = directory_of(path), error.recording
    if manifest is not None:
        name = str(copy_of(Path(), recording))
        if name not in {member.name for member in manifest.members}:
            return error
        more = (
            f"the archive holds it: `iolab archive --extract {shlex.quote(str(path))} --out DIR`, "
            "then `iolab run DIR` says where to put it"
        )
    elif directory is not None and is_copy(
        copy := copy_of(directory, recording), recording, load_core()
    ):
        more = _about_copy(copy, recording.file)
    else:
        return error
    return RecordingError(error.message, f"{error.hint}; {more}", recording)


def _about_copy(copy: Path, file: str) -> str:
    """Advice about a copy of a recording; a command only where it can do no harm.

    Whoever made the study chose the place and the content: a study from elsewhere may name the
    file of a shell.
    """
    place = Path(file)
    if place.exists():
        return f"a copy of it lies with the results: {copy}"
    if not is_place_here(file):
        return (
            f"a copy of it lies with the results: {copy}. The study wants it at {file}, which is "
            "hidden or outside of the working directory: look at it before you put it there"
        )
    command = f"cp {file_word(str(copy))} {file_word(file)}"
    if not place.parent.is_dir():
        command = f"mkdir -p {file_word(str(place.parent))} && {command}"
    return f"a copy lies with the results: `{command}`"


def load_stored(path: Path) -> StudyData:
    """Everything stored about a study, ready to be judged and drawn.

    Raises
    ------
    StoreError : there is no study that can be read.
    IolabError : nothing is there, or an archive is damaged.
    """
    if not is_archive(path):
        return load_database(find_database(path))
    with unpacked(path) as (database, _):
        return load_database(database)


def load_database(database: Path) -> StudyData:
    """Everything in a database: rows, latency curves, the A/A result of its testbed.

    Raises
    ------
    StoreError : it cannot be read.
    """
    with without_collecting(), Store.open_reader(database) as store:
        data = drawable(store)
        return replace(data, calibration=calibrations.find_for(data.study.testbed, data.facts))


def drawable(store: Store) -> StudyData:
    """Everything that a report of a store shows, but for what lies beside it."""
    data, told = store.load_data(), store.load_records()
    return replace(data, by_hand=by_hand_of(store, data), curves=told.curves, traced=told.traced)


def by_hand_of(store: Store, data: StudyData) -> tuple[ByHand, ...]:
    """The trials in the languages of other programs; none where that cannot be said."""
    if data.study.kind == "imported":
        return ()
    from iolab.export.by_hand import by_hand
    from iolab.run.core import load_core

    try:
        return by_hand(data, store.contents, load_core())
    except IolabError:  # A report does not fail because another program cannot be told the same.
        return ()


@contextmanager
def opened(path: Path, note: Callable[[str], None]) -> Generator[Path, None, None]:
    """Database of a study, or of an archive, which lives in a temporary directory meanwhile.

    `note` hears of what an archive says of itself.

    Raises
    ------
    ArchiveError : the archive is damaged, foreign, or of a newer program.
    """
    if not is_archive(path):
        yield find_database(path)
        return
    with unpacked(path) as (database, manifest):
        if manifest is not None:
            note(f"iolab: {path}: {manifest_text(manifest)}")
        yield database


def manifest_text(manifest: Manifest) -> str:
    """Write what an archive says of itself in one line."""
    return visible_line(
        f"study '{manifest.study_name}', measured on {manifest.machine}; archived by iolab "
        f"{manifest.iolab_version}"
    )


@contextmanager
def unpacked(path: Path) -> Generator[tuple[Path, Manifest | None], None, None]:
    """Database of an archive, in a temporary directory, with what the archive says of itself.

    Raises
    ------
    ArchiveError : the archive is damaged, foreign, or of a newer program.
    """
    from iolab.archive.read import read_archive
    from iolab.library.archive_claims import Claims

    found = read_archive(path)
    claims = Claims(found.manifest)
    with usable(found, claims) as database:
        yield database, claims.corrected


@contextmanager
def usable(found: Inspection, claims: Claims) -> Generator[Path, None, None]:
    """Copy of the database in an archive that is whole, in a directory of its own.

    `claims` looks at what else is said of it.

    Raises
    ------
    DamagedError : it is no study that can be used; says what is wrong with it.
    """
    from iolab.archive.format import DamagedError
    from iolab.archive.read import shown
    from iolab.store.verify import problems_of_study

    with copied(found) as database:
        problems = problems_of_study(database, claims)
        if problems:
            raise DamagedError(
                f"{found.path} is damaged: {STORE_NAME} in it cannot be used: {shown(problems)}",
                "ask for the file again, or for one that `iolab archive --check` calls whole",
            )
        yield database


@contextmanager
def copied(found: Inspection) -> Generator[Path, None, None]:
    """Copy of an archive's database in a temporary directory, whether or not it can be used."""
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        database = Path(folder) / STORE_NAME
        database.write_bytes(found.contents[STORE_NAME])
        yield database
