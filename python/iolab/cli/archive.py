"""``iolab archive``: a study as one file, checked, unpacked, or exported to other programs.

What packs, unpacks and translates is imported only when it is called: ``iolab --help`` waits for
none of it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.errors import IolabError, StoreError
from iolab.library.services import Services
from iolab.library.stored import copied, find_database, is_archive, unpacked, usable
from iolab.store import users_files
from iolab.store.continuing import command_on, is_continuable
from iolab.store.db import STORE_NAME, Store
from iolab.store.owner import make_directories
from iolab.store.users_files import Allowed, refuse_existing
from iolab.visible import visible_line
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.archive.format import Manifest
    from iolab.archive.read import Inspection

NAME = "archive"
HELP = "put a study into one file, check or unpack it, or export it to fio or IOzone"

EXIT_CHECK_FAILED: Final = 5
PROGRAMS: Final = ("fio", "iozone")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("target", metavar="DIR|FILE", help="a study, or an archive of one")
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="file to make (NAME.iolab), or directory for --extract and --export",
    )
    add_overwrite_flag(
        parser,
        "a file that may be replaced (may be repeated); no archive or exported file that is there"
        " is replaced without it, even if iolab made it",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="verify FILE; exit 5 if it is damaged")
    what.add_argument("--extract", action="store_true", help="unpack FILE into the directory --out")
    what.add_argument(
        "--export", choices=PROGRAMS, help="write the trials as fio jobs or IOzone commands"
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Do one of the four."""
    target, out = Path(arguments.target), Path(arguments.out) if arguments.out else None
    if arguments.check:
        return _check(target, console)
    if arguments.extract:
        return _extract(target, out, console)
    if arguments.export:
        return _export(arguments, target, services, console)
    return _pack(target, out, services, (console, Allowed.of(arguments.overwrite)))


@contextmanager
def opened(path: Path, console: Console) -> Generator[Path, None, None]:
    """Database of a study, or of an archive, which lives in a temporary directory meanwhile.

    Raises
    ------
    ArchiveError : the archive is damaged, foreign, or of a newer program.
    """
    if not is_archive(path):
        yield find_database(path)
        return
    with unpacked(path) as (database, manifest):
        if manifest is not None:
            console.note(f"iolab: {path}: {_told(manifest)}")
        yield database


def _told(manifest: Manifest) -> str:
    return visible_line(
        f"study '{manifest.study_name}', measured on {manifest.machine}; archived by iolab "
        f"{manifest.iolab_version}"
    )


def _pack(
    target: Path, out: Path | None, services: Services, beside: tuple[Console, Allowed]
) -> int:
    from iolab.archive.format import SUFFIX
    from iolab.archive.write import write_new
    from iolab.library.packing import pack_study

    if is_archive(target):
        raise IolabError(
            f"{target} is a file, not the directory of a study",
            "name a directory; an archive is read with --check, --extract or --export",
        )
    console, allowed = beside
    database = find_database(target)
    if out is None:
        out = Path(database.resolve().parent.name + SUFFIX)
    if out.is_dir():
        raise IolabError(
            f"{out} is a directory, and an archive is a file",
            f"name the file, as in --out {out / f'study{SUFFIX}'}",
        )
    refuse_existing([out], allowed)  # Before the work, though `write_new` would notice.
    manifest, content = pack_study(database, services, console)
    write_new(out, content, allowed)
    console.result(
        f"{out}: study '{visible_line(manifest.study_name)}', "
        f"{counted(len(manifest.members), 'file')}, {units.format_bytes_rounded(len(content))}"
    )
    console.result(f"content SHA-256 {manifest.sha256}")
    return 0


def _check(target: Path, console: Console) -> int:
    from iolab.archive.read import inspect

    found = inspect(target)
    problems = [*found.problems, *problems_inside(found)]
    if problems:
        console.result(f"{target} is damaged:")
        for problem in problems:
            console.result(f"  {visible_line(problem)}")
        if found.contents:
            console.result(f"{counted(len(found.contents), 'file')} in it: as packed.")
        return EXIT_CHECK_FAILED
    if found.manifest is not None:
        console.result(f"{target} is whole: {_told(found.manifest)}")
        console.result(
            f"{counted(len(found.contents), 'file')}, content SHA-256 {found.manifest.sha256}"
        )
    return 0


def problems_inside(found: Inspection) -> list[str]:
    """What is wrong with the database, if it is at least what the manifest promises."""
    from iolab.store.verify import problems_of_study

    if STORE_NAME not in found.contents:
        return []
    with copied(found) as database:
        return [f"{STORE_NAME}: {problem}" for problem in problems_of_study(database)]


def _extract(target: Path, out: Path | None, console: Console) -> int:
    from iolab.archive.read import read_archive, unpack

    if out is None:
        raise IolabError("--extract needs a directory", "name a new one with --out DIR")
    found = read_archive(target)
    with usable(found) as database, Store.open_reader(database) as store:
        study = store.study
        unpack(found, out)
    console.result(f"{out}: {counted(len(found.contents), 'file')}")
    place = shlex.quote(str(out))
    more = f", `{command_on(study, place=place)}` continues it"
    more = more if is_continuable(study) else ""
    console.result(f"`iolab report {place}` shows the results{more}")
    return 0


def _export(
    arguments: argparse.Namespace, target: Path, services: Services, console: Console
) -> int:
    from iolab.export.fio import file_name, fio_job
    from iolab.export.iozone import iozone_script
    from iolab.export.treatments import exported_treatments

    with opened(target, console) as database, Store.open_reader(database) as store:
        data = store.load_data()
        items = exported_treatments(data, store.contents, services.load_core())
    out = Path(arguments.out) if arguments.out else None
    if arguments.export == "fio":
        place = out.absolute() if out else None
        files = {file_name(item): fio_job(item, place) for item in items}
    else:
        files = {"iozone.sh": iozone_script(items, data.study.name)}
    if out is None and len(files) == 1:
        console.result(next(iter(files.values())).rstrip("\n"))
        return 0
    if out is None:
        raise IolabError(
            f"the study has {len(files)} treatments, a job file each",
            "name a directory for them with --out",
        )
    _write_files(files, out, Allowed.of(arguments.overwrite))
    console.result(f"{out}: {', '.join(files)}")
    return 0


def _write_files(files: dict[str, str], out: Path, allowed: Allowed) -> None:
    contents = {out / name: text.encode() for name, text in files.items()}
    refuse_existing(contents, allowed)
    try:
        make_directories(out)
        users_files.write_new(contents, allowed)
    except OSError as error:
        raise StoreError(
            f"{out} cannot be written: {error.strerror}", "name another directory with --out"
        ) from None
