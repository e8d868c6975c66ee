"""Check of what is possible as this user, and what is noisy on this machine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.testbed.agent import Agent, AgentError, left_behind_text
from iolab.testbed.command import agent_command, find_agent

if TYPE_CHECKING:
    from iolab.protocol import BoundaryOf, Check, OpenJournal


_ROOTS_ADVICE: Final = ("--allow-knobs-on", "loop:")
"""Parts of advice that only root can follow."""


def checks(paths: Sequence[str], services: Services) -> Iterator[Check]:
    """Look at everything; one check after the other.

    Parameters
    ----------
    paths : directories and devices to look at, too.
    services : the compiled half.

    Raises
    ------
    TestbedError : the agent is missing, or fails.
    """
    yield _of_extension(services)
    agent_path = find_agent()
    yield {"name": "agent", "status": "ok", "message": f"found: {agent_path}", "hint": ""}
    with Agent([str(agent_path)]) as agent:
        for journal in _open_journals(agent):
            yield {
                "name": "journal",
                "status": "warn",
                "message": f"{left_behind_text([journal])} ({journal.get('run')})",
                "hint": "iolab restore",
            }
        found = agent.doctor(list(paths))
        if os.geteuid() == 0:
            yield from found
            return
        of_sudo = _of_sudo()
        is_root_there = of_sudo["status"] == "ok"
        yield from (found if is_root_there else map(_for_a_user, found))
        yield of_sudo


def _for_a_user(check: Check) -> Check:
    """The same check; its advice says where only root can follow it."""
    hint = check["hint"]
    if any(word in hint for word in _ROOTS_ADVICE) and "as root" not in hint:
        return {**check, "hint": f"{hint} (as root; dir:PATH without knobs and sim: need none)"}
    return check


def _of_extension(services: Services) -> Check:
    name = "extension"
    try:
        services.load_core()
    except IolabError as error:
        return {"name": name, "status": "fail", "message": error.message, "hint": error.hint}
    return {
        "name": name,
        "status": "ok",
        "message": "the compiled part of iolab can be loaded",
        "hint": "",
    }


def _of_sudo() -> Check:
    """Tell whether the agent can be root for this user, and what it does then."""
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
    """Changes that dead runs left behind; nothing where there can be no journal: a check tells
    why.
    """
    try:
        return agent.hello(f"doctor-{uuid.uuid4().hex[:8]}", is_dry_run=True).open_journals
    except AgentError:
        return ()
