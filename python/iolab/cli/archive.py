"""``iolab archive``: a study as one file, checked, unpacked, or exported to other programs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.visible import visible_line
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.library import archives

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
    """Do one of the four; what packs and translates is imported only now."""
    from iolab.library import archives

    target, out = Path(arguments.target), Path(arguments.out) if arguments.out else None
    overwrite = tuple(arguments.overwrite)
    if arguments.check:
        return _tell_checked(target, archives.check(target, services), console)
    if arguments.extract:
        if out is None:
            raise IolabError("--extract needs a directory", "name a new one with --out DIR")
        _tell_extracted(archives.extract(target, out, services), console)
    elif arguments.export:
        found = archives.export(target, arguments.export, services, console.note)
        _tell_exported(found, out, overwrite, console)
    else:
        _tell_packed(archives.pack(target, out, overwrite, services, console), console)
    return 0


def _tell_packed(packed: archives.Packed, console: Console) -> None:
    console.result(
        f"{packed.path}: study '{visible_line(packed.study_name)}', "
        f"{counted(packed.n_files, 'file')}, {units.format_bytes_rounded(packed.size_bytes)}"
    )
    console.result(f"content SHA-256 {packed.sha256}")


def _tell_checked(target: Path, found: archives.CheckedArchive, console: Console) -> int:
    files = counted(found.n_files, "file")
    if found.problems:
        console.result(f"{target} is damaged:")
        for problem in found.problems:
            console.result(f"  {visible_line(problem)}")
        if found.n_files:
            console.result(f"{files} in it: as packed.")
        return EXIT_CHECK_FAILED
    if found.about is not None:
        whole = ": its study is whole, and other files are not" if found.others else " is whole"
        console.result(f"{target}{whole}: {found.about}")
        console.result(f"{files}, content SHA-256 {found.sha256}")
    if found.others:
        console.result(
            f"Do not believe {', '.join(found.others)}: this iolab makes others of the study, as "
            "--extract and `iolab report` do"
        )
    return 0


def _tell_extracted(found: archives.Extracted, console: Console) -> None:
    if found.others:
        console.note(
            "iolab: note: made anew or left out, since the archive has others than this iolab makes"
            f" of its study: {', '.join(found.others)}"
        )
    console.result(f"{found.path}: {counted(found.n_files, 'file')}")
    more = f", `{found.continued_by}` continues it" if found.continued_by is not None else ""
    console.result(f"`iolab report {shlex.quote(str(found.path))}` shows the results{more}")


def _tell_exported(
    found: archives.Export, out: Path | None, overwrite: tuple[str, ...], console: Console
) -> None:
    if out is not None:
        console.result(f"{out}: {', '.join(found.write(out, overwrite))}")
        return
    texts = found.texts()
    if len(texts) != 1:
        raise IolabError(
            f"the study has {len(texts)} treatments, a job file each",
            "name a directory for them with --out",
        )
    console.result(next(iter(texts.values())).rstrip("\n"))
