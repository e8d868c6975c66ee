"""``iolab doctor``: what is possible as this user, and what is noisy on this machine."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Mapping
from typing import Final

from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import IolabError
from iolab.testbed.agent import Agent, left_behind_text
from iolab.testbed.command import find_agent

NAME = "doctor"
HELP = "say what is possible as this user and what is noisy here"

_MARKS: Final = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="directories, devices to look at")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print one line per check, and what would help."""
    _print(console, _extension_check(services))
    agent_path = find_agent()
    _print(console, {"name": "agent", "status": "ok", "message": str(agent_path)})
    with Agent([str(agent_path)]) as agent:
        hello = agent.hello(f"doctor-{uuid.uuid4().hex[:8]}", is_dry_run=True)
        for journal in hello.open_journals:
            _print(
                console,
                {
                    "name": "journal",
                    "status": "warn",
                    "message": f"{left_behind_text([journal])} ({journal.get('run')})",
                    "hint": "iolab restore",
                },
            )
        for check in agent.doctor(arguments.paths):
            _print(console, check)
    return 0


def _extension_check(services: Services) -> Mapping[str, str]:
    try:
        services.load_core()
    except IolabError as error:
        return {
            "name": "extension",
            "status": "fail",
            "message": error.message,
            "hint": error.hint,
        }
    return {"name": "extension", "status": "ok", "message": "compiled part is there"}


def _print(console: Console, check: Mapping[str, str]) -> None:
    mark = _MARKS.get(check.get("status", ""), check.get("status", ""))
    console.result(f"{mark}  {check.get('name', ''):18} {check.get('message', '')}")
    if check.get("hint"):
        console.result(f"      {'':18} -> {check['hint']}")
