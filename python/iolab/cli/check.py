"""``iolab check``: is this directory fast enough for etcd, GitLab, ...? PASS or FAIL."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from iolab.cli.console import Console
from iolab.errors import IolabError
from iolab.library.services import Services

NAME = "check"
HELP = "say whether a directory meets a published requirement, such as etcd's: exit 0, 4 or 5"

EXIT_UNDECIDED: Final = 4
EXIT_FAIL: Final = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=None,
        help="directory on the storage that is checked (the working directory); what is written"
        " there is removed",
    )
    parser.add_argument(
        "--for",
        dest="requirements",
        metavar="NAMES",
        help="requirements, as in etcd or etcd,gitaly (all of them, as a table, exit 0)",
    )
    parser.add_argument(
        "--time", metavar="TIME", default="1m", help="time of the whole check, from 5s to 1h (1m)"
    )
    parser.add_argument(
        "--list", action="store_true", help="describe the requirements and their sources"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Check the directory, or list the requirements; returns the code of rule R12."""
    from iolab.library.check import check_directory, check_time_ns, find_requirements
    from iolab.library.check_text import (
        check_text,
        requirement_dict,
        requirements_text,
        result_dict,
    )

    wanted = find_requirements(arguments.requirements or "")
    time_ns = check_time_ns(arguments.time)
    if arguments.list:
        if arguments.directory is not None:
            raise IolabError(
                f"--list measures nothing, and {arguments.directory} is named",
                "leave one of them out",
            )
        if arguments.json:
            console.result(json.dumps([requirement_dict(one) for one in wanted], indent=2))
        else:
            console.result(requirements_text(wanted, console.width))
        return 0
    directory = Path(arguments.directory or ".").absolute()
    result = check_directory(directory, wanted, time_ns, services, console)
    if arguments.json:
        console.result(json.dumps(result_dict(result), indent=2, ensure_ascii=False))
    else:
        is_table = not arguments.requirements
        console.result(check_text(result, is_table=is_table, width=console.width))
    if not arguments.requirements:
        return 0
    if "FAIL" in result.words:
        return EXIT_FAIL
    return EXIT_UNDECIDED if "UNDECIDED" in result.words else 0
