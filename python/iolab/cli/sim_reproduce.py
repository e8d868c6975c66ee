"""``iolab sim reproduce``: every published number beside the simulated one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.subjects import Subject
from iolab.library.services import Services

EXIT_CHANGED: Final = 5


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "documents", metavar="DOCUMENT", nargs="*", help="d1 to d5; without one all of them"
    )
    parser.add_argument("--pages", metavar="DIR", help="write the page of each document")
    add_overwrite_flag(parser)


def _execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from iolab.library import reproduced_text, reproducing

    del services
    n_changed = 0
    for index, document in enumerate(reproducing.documents(arguments.documents)):
        if index:
            console.result("")
        console.result(reproduced_text.title(document))
        found = reproducing.reproduce(document)
        for line in reproduced_text.lines(found, console.width):
            console.result(line)
        n_changed += sum(outcome.is_changed for outcome in found.outcomes)
        if arguments.pages is not None:
            folder, overwrite = Path(arguments.pages), tuple(arguments.overwrite or ())
            console.result(f"page: {reproducing.write_page(found, folder, overwrite)}")
    if n_changed:
        told = "number" if n_changed == 1 else "numbers"
        console.note(f"{n_changed} {told} became something else than before: rows with an arrow")
    return EXIT_CHANGED if n_changed else 0


REPRODUCE: Final[Subject] = (
    _declare,
    _execute,
    "Simulate what five published documents measured: each number beside ours; exit code 5 if "
    "one becomes something else than before.",
)
