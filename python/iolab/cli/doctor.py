"""``iolab doctor``: what is possible as this user, and what is noisy on this machine."""

from __future__ import annotations

import argparse
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.testbed.agent import Agent, AgentError, left_behind_text
from iolab.testbed.command import agent_command, find_agent

if TYPE_CHECKING:
    from iolab.protocol import BoundaryOf, Check, OpenJournal

NAME = "doctor"
HELP = "say what is possible as this user and what is noisy here"

_NO_TRIAL: Final = (
    ("of the ten seconds before the trial", "of the last ten seconds"),
    (" during the trial", " just now"),
    (" before the trial", " just now"),
)
"""Words of the agent for the surroundings of a trial, where there is none."""
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
    _print(console, _extension_check(services))
    agent_path = find_agent()
    _print(console, {"name": "agent", "status": "ok", "message": str(agent_path), "hint": ""})
    with Agent([str(agent_path)]) as agent:
        for journal in _open_journals(agent):
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
    if os.geteuid() != 0:
        _print(console, _sudo_check())
    return 0 if all(map(os.path.exists, arguments.paths)) else 1


def _sudo_check() -> Check:
    """Whether the agent can be root for this user, and what it does then."""
    name = "agent by sudo"
    try:
        command = agent_command(needs_root=True, is_asking=False)
        with Agent(command) as agent:
            hello = agent.hello(f"doctor-{uuid.uuid4().hex[:8]}", is_dry_run=True)
    except IolabError as error:
        return {"name": name, "status": "warn", "message": error.message, "hint": error.hint}
    message = f"{command[-1]}: {_allowed(hello.boundary)}"
    return {"name": name, "status": "ok", "message": message, "hint": ""}


def _allowed(boundary: BoundaryOf | None) -> str:
    if boundary is None:
        return "it is root and does everything"
    classes = ", ".join(boundary.get("classes", ())) or "none"
    source = boundary.get("policy")
    where = "by default" if source in (None, "default") else f"by {source}"
    return f"classes {classes} are allowed {where}"


def _open_journals(agent: Agent) -> Sequence[OpenJournal]:
    """What dead runs left behind; nothing where there can be no journal: a check tells why."""
    try:
        return agent.hello(f"doctor-{uuid.uuid4().hex[:8]}", is_dry_run=True).open_journals
    except AgentError:
        return ()


def _extension_check(services: Services) -> Check:
    try:
        services.load_core()
    except IolabError as error:
        return {
            "name": "extension",
            "status": "fail",
            "message": error.message,
            "hint": error.hint,
        }
    return {"name": "extension", "status": "ok", "message": "compiled part is there", "hint": ""}


def _print(console: Console, check: Check) -> None:
    mark = _MARKS.get(check.get("status", ""), check.get("status", ""))
    message = check.get("message", "")
    for said_of_a_trial, said_here in _NO_TRIAL:
        message = message.replace(said_of_a_trial, said_here)
    console.result(f"{mark}  {check.get('name', ''):18} {message}")
    if _POLLED in check.get("name", "") + message:
        for line in _ABOUT_POLLED:
            console.result(f"      {'':18} {line}")
    if check.get("hint"):
        console.result(f"      {'':18} -> {check['hint']}")
