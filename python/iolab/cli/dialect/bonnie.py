"""What bonnie++'s command line needs of the front end beyond what all dialects need.

It runs as the user who started it: another one is refused with what to type instead. What the
original writes to standard error, a table or its progress, is written there after each run.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
from collections.abc import Sequence
from typing import Any, Final

from iolab.cli.console import Console
from iolab.cli.dialect.plan import DialectCore, DialectPlan, Json
from iolab.errors import DialectError
from iolab.study.factors import nearest

NAME: Final = "bonnie++"


def check_user(plan: DialectPlan, console: Console) -> None:
    """Refuse ``-u`` and ``-g`` that would need another user; say who it is, as the original.

    Raises
    ------
    DialectError : there is no such user or group, or it is another one.
    """
    user, group = plan.values["user"]
    if user:
        entry = _user(user)
        if entry.pw_uid != os.geteuid():
            raise DialectError(
                f"-u {user}: iolab runs as the user who starts it, and that is another one",
                f"write `sudo -u {user} iolab bonnie++ ...`, or leave -u out",
            )
    if group:
        found = _group(group)
        if found.gr_gid not in {os.getegid(), *os.getgroups()}:
            raise DialectError(
                f"-g {group}: iolab runs with the groups of the user who starts it",
                f"write `sg {group} -c 'iolab bonnie++ ...'`, or leave it out",
            )
    if (user or group) and not plan.values["show"]["is_quiet"]:
        console.note(f"Using uid:{os.geteuid()}, gid:{os.getegid()}.")


def _user(text: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        names = [entry.pw_name for entry in pwd.getpwall()]
        raise DialectError(
            f"Can't find user {text}{nearest(text, names)}", "leave -u out: it need not be said"
        ) from None


def _group(text: str) -> grp.struct_group:
    try:
        return grp.getgrgid(int(text)) if text.isdecimal() else grp.getgrnam(text)
    except (KeyError, OverflowError):
        names = [entry.gr_name for entry in grp.getgrall()]
        raise DialectError(
            f"Can't find group {text}{nearest(text, names)}", "leave -g out: it need not be said"
        ) from None


def with_latencies(phases: Sequence[Json], record: Json) -> list[dict[str, Any]]:
    """The same phases, each with its longest call."""
    longest = {
        phase["name"]: max(
            (
                int(histogram["max"])
                for tenant in phase["tenants"]
                for histogram in (tenant["service"] or {}).values()
                if histogram
            ),
            default=0,
        )
        for phase in record["phases"]
    }
    return [{**phase, "latency_ns_max": longest[phase["name"]]} for phase in phases]


def show_aside(plan: DialectPlan, core: DialectCore, row: Json, console: Console) -> None:
    """Write to standard error what the original writes there."""
    event = json.dumps({"event": "row_aside", **row})
    text = core.dialect_render(plan.dialect, plan.text, event)
    if text:
        console.note(text.removesuffix("\n"))
