"""A study as one file: packed, checked, unpacked, or told to other programs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from iolab.archive.format import SUFFIX
from iolab.archive.read import inspect, read_archive, unpack
from iolab.archive.write import write_new
from iolab.errors import IolabError, StoreError
from iolab.export.fio import file_name, fio_job
from iolab.export.iozone import iozone_script
from iolab.export.treatments import Exported, exported_treatments
from iolab.frozen import frozen, replace
from iolab.library.archive_claims import Claims, members_of_archive
from iolab.library.packing import pack_study
from iolab.library.services import Services
from iolab.library.stored import (
    copied,
    find_database,
    is_archive,
    manifest_text,
    opened,
    usable,
)
from iolab.run.observer import Observer
from iolab.store import users_files
from iolab.store.continuing import command_on, is_continuable
from iolab.store.db import STORE_NAME, Store
from iolab.store.owner import make_directories
from iolab.store.users_files import Allowed, refuse_existing
from iolab.store.verify import problems_of_study

Program: TypeAlias = Literal["fio", "iozone"]
"""A program that trials can be told to."""
_SCRIPT: Final = "iozone.sh"


@frozen
class Packed:
    """A new archive."""

    path: Path
    study_name: str
    n_files: int
    size_bytes: int
    sha256: str
    """Digest of the content: the same for the same study."""


@frozen
class CheckedArchive:
    """State in which an archive was found."""

    problems: tuple[str, ...]
    """Faults of the archive; none if it is whole."""
    n_files: int
    """Files in it that are as they were packed."""
    about: str | None
    """Statement of the archive about itself; None if it says nothing that can be read."""
    sha256: str
    """Digest of the content that it promises; empty where `about` is None."""
    others: tuple[str, ...] = ()
    """Files that this iolab makes otherwise of the same study. Another version may have made them,
    or somebody: they are not believed."""


@frozen
class Extracted:
    """A directory that was an archive."""

    path: Path
    n_files: int
    others: tuple[str, ...]
    """Files that were made anew of the study, since those of the archive were others; such as the
    study does not give were left out."""
    continued_by: str | None
    """The command that continues the study; None if it is complete or cannot be continued."""


def pack(
    target: Path, out: Path | None, overwrite: tuple[str, ...], means: Services, observer: Observer
) -> Packed:
    """Put a study into one file.

    Parameters
    ----------
    target : the results directory, or its database.
    out : the file to make; None is one in the working directory with the name of the study's.
    overwrite : files of the user's own that may be replaced.
    means : the compiled half and the statistics.
    observer : hears of what the archive lacks.

    Raises
    ------
    RefusedError : the file exists.
    StoreError : the study is being written, damaged, or no study.
    """
    if is_archive(target):
        raise IolabError(
            f"{target} is a file, not the directory of a study",
            "name a directory; an archive is read with --check, --extract or --export",
        )
    database = find_database(target)
    if out is None:
        out = Path(database.resolve().parent.name + SUFFIX)
    if out.is_dir():
        raise IolabError(
            f"{out} is a directory, and an archive is a file",
            f"name the file, as in --out {out / f'study{SUFFIX}'}",
        )
    allowed = Allowed.of(overwrite)
    refuse_existing([out], allowed)  # Before the work, though `write_new` would notice.
    manifest, content = pack_study(database, means, observer)
    write_new(out, content, allowed)
    return Packed(out, manifest.study_name, len(manifest.members), len(content), manifest.sha256)


def check(target: Path, services: Services | None = None) -> CheckedArchive:
    """Verify an archive, the study in it, and all files that were made of that.

    Every value is derived again from its record, and reports and commands are made again.

    Raises
    ------
    ArchiveError : it is none.
    """
    found = inspect(target)
    claims = Claims(found.manifest, most=None)
    problems, others = found.problems, ()
    if STORE_NAME in found.contents:
        with copied(found) as database:
            inside = problems_of_study(database, claims)
            problems += tuple(f"{STORE_NAME}: {problem}" for problem in inside)
            if not inside:
                members = members_of_archive(found, database, services or Services())
                problems, others = problems + members.problems, members.others
    manifest = claims.corrected
    return CheckedArchive(
        problems,
        len(found.contents),
        None if manifest is None else manifest_text(manifest),
        "" if manifest is None else manifest.sha256,
        others,
    )


def extract(target: Path, out: Path, services: Services | None = None) -> Extracted:
    """Unpack an archive into a new directory.

    Its database and the recordings of its study are taken as they are, all else is made again.

    Raises
    ------
    ArchiveError : it is damaged, foreign, or of a newer program.
    """
    found = read_archive(target)
    with usable(found, Claims(found.manifest, most=None)) as database:
        with Store.open_reader(database) as store:
            study = store.study
        members = members_of_archive(found, database, services or Services())
        contents = {STORE_NAME: found.contents[STORE_NAME], **members.made}
        unpack(replace(found, contents=contents), out)
        others = [
            name
            for name, content in found.contents.items()
            if name != STORE_NAME and contents.get(name) != content
        ]
    command = command_on(study, place=shlex.quote(str(out)))
    continued_by = command if is_continuable(study) else None
    return Extracted(out, len(contents), tuple(others), continued_by)


@frozen
class Export:
    """The treatments of a study, as another program takes them."""

    program: Program
    study_name: str
    _items: tuple[Exported, ...]

    def texts(self, folder: Path | None = None) -> dict[str, str]:
        """Name of each file to its text.

        Parameters
        ----------
        folder : where they will lie, as jobs of fio name it; None leaves that to who runs them.
        """
        if self.program == "fio":
            place = folder.absolute() if folder else None
            return {file_name(item): fio_job(item, place) for item in self._items}
        return {_SCRIPT: iozone_script(self._items, self.study_name)}

    def write(self, folder: Path, overwrite: tuple[str, ...] = ()) -> list[str]:
        """Write the files into a directory; returns their names.

        Raises
        ------
        RefusedError : one exists, and `overwrite` does not name it.
        StoreError : one cannot be written.
        """
        texts, allowed = self.texts(folder), Allowed.of(overwrite)
        contents = {folder / name: text.encode() for name, text in texts.items()}
        refuse_existing(contents, allowed)
        try:
            make_directories(folder)
            users_files.write_new(contents, allowed)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be written: {error.strerror}",
                "name another directory with --out",
            ) from None
        return list(texts)


def export(target: Path, program: Program, means: Services, note: Callable[[str], None]) -> Export:
    """Tell the trials of a stored study to another program.

    Raises
    ------
    StudyError : it cannot be told the same.
    """
    with opened(target, note) as database, Store.open_reader(database) as store:
        data = store.load_data()
        items = exported_treatments(data, store.contents, means.load_core())
    return Export(program, data.study.name, tuple(items))
