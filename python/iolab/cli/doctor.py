"""``iolab doctor``: what is possible as this user, and what is noisy on this machine."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.protocol import Check

NAME = "doctor"
HELP = "say what is possible as this user and what is noisy here"

_NO_TRIAL: Final = (
    ("of the ten seconds before the trial", "of the last ten seconds"),
    (" during the trial", " just now"),
    (" before the trial", " just now"),
)
"""Words of the agent for the surroundings of a trial, where there is none."""
_REFUSED: Final = "cannot be erased by `--on device:`: "
_PROTECTED: Final = "is protected: iolab refuses to erase it with `--on device:`, because "
"""Words of the agent for a device that is in use, and those that tell what is in order there."""
_POLLED: Final = "io_uring_poll"
_ABOUT_POLLED: Final = (
    "io_uring_poll asks the device for completions instead of being interrupted, which only",
    "devices with polled queues can; other engines do not need them (docs/reference/engines.md)",
)
_MARKS: Final = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="directories, devices to look at")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print one line per check, and what would help; 1 if a place that was named is not there."""
    from iolab.library.doctor import checks

    for check in checks(arguments.paths, services):
        _print(console, check)
    return 0 if all(map(os.path.exists, arguments.paths)) else 1


def _print(console: Console, check: Check) -> None:
    mark = _MARKS.get(check.get("status", ""), check.get("status", ""))
    message = check.get("message", "")
    for said_of_a_trial, said_here in _NO_TRIAL:
        message = message.replace(said_of_a_trial, said_here)
    message = message.replace(_REFUSED, _PROTECTED)
    console.result(f"{mark}  {check.get('name', ''):18} {message}")
    if _POLLED in check.get("name", "") + message:
        for line in _ABOUT_POLLED:
            console.result(f"      {'':18} {line}")
    if check.get("hint"):
        console.result(f"      {'':18} -> {check['hint']}")
