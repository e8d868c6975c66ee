"""``iolab bon-csv2txt``: bonnie++'s CSV lines, of whatever version, as its table."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from iolab.cli.console import Console
from iolab.errors import IolabError
from iolab.library.dialect import bonnie
from iolab.library.services import Services
from iolab.regular_file import refuse_endless

NAME = "bon-csv2txt"
HELP = "show CSV lines of bonnie++, versions 1.03 to 2.00, as a table"
_BYTES_MAX: Final = 16 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="lines to show (default: standard input)"
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the table of all lines; exit 1 if some were none."""
    core: Any = services.load_core()
    text = "".join(_read(Path(name)) for name in arguments.files) or _standard_input(arguments)
    event = json.dumps({"event": "table", "text": text})
    answer = json.loads(core.dialect_render(bonnie.NAME, "{}", event))
    if answer["text"]:
        console.result(str(answer["text"]).removesuffix("\n"))
    problems: list[str] = answer["problems"]
    for problem in problems:
        console.note(f"iolab: {problem}")
    if not answer["text"] and not problems:
        raise IolabError("there is no line of bonnie++", "name a file that holds its CSV lines")
    return 1 if problems else 0


def _read(path: Path) -> str:
    refuse_endless(path)
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise IolabError(f"{path} is larger than {_BYTES_MAX >> 20} MiB", "split it")
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise IolabError(
            f"{path} cannot be read: {error.strerror}", "name a file of CSV lines"
        ) from None
    return text if text.endswith("\n") else text + "\n"


def _standard_input(arguments: argparse.Namespace) -> str:
    if arguments.files:
        return ""
    content = sys.stdin.buffer.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise IolabError(f"standard input is larger than {_BYTES_MAX >> 20} MiB", "split it")
    return content.decode("utf-8", errors="replace")
