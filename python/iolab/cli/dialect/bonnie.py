"""What bonnie++'s command line needs of the front end beyond what all dialects need.

Users and groups are looked up here and taken by the measuring child; random numbers are read from
their file; semaphores are made by the agent, which knows the system calls; a prompt is printed and
answered. What the original writes to standard error, a table or its progress, is written there
after each run.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import select
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from iolab.cli.console import Console
from iolab.cli.dialect.plan import DialectCore, DialectPlan, Json
from iolab.errors import DialectError
from iolab.run.stop import StopSwitch
from iolab.study.factors import nearest
from iolab.testbed.command import tell_agent
from iolab.testbed.model import Testbed

NAME: Final = "bonnie++"
_NOBODYS_GROUP: Final = "nogroup"
_NUMBER_BYTES: Final = 4
_NUMBERS_MAX: Final = 1 << 16
_LINE_BYTES_MAX: Final = 4096


def run_as(plan: DialectPlan, testbed: Testbed, console: Console) -> dict[str, Any] | None:
    """Whom the measuring child becomes, None if that is who starts it; tells who it is.

    Raises
    ------
    DialectError : there is no such user or group, or only root could become it.
    """
    user, group = plan.asked.get("user", ("", ""))
    is_root = os.geteuid() == 0
    if testbed.is_simulated:
        if user or group:
            console.note("iolab: note: -u and -g mean nothing in a simulation")
        return None
    if not user and not group:
        if is_root:
            _say_root(plan, console)
        return None
    uid, gid = _ids(user, group)
    if not is_root and uid != os.geteuid():
        raise DialectError(
            f"-u {user}: only root can run as another user",
            f"write `sudo iolab bonnie++ -u {user} ...`, or leave -u out",
        )
    if not is_root and gid not in {os.getegid(), *os.getgroups()}:
        raise DialectError(
            f"-g {group}: only root can run as a group that one is not in",
            f"write `sudo iolab bonnie++ -u {uid} -g {group} ...`, or leave it out",
        )
    _say_who(plan, console, (uid, gid))
    is_agent_root = is_root or testbed.needs_root
    if (uid, gid) == (os.geteuid(), os.getegid()) and is_root == is_agent_root:
        return None
    if not is_agent_root:
        raise DialectError(
            f"-g {group or gid}: without root one runs with one's first group",
            f"write `sg {group or gid} -c 'iolab bonnie++ ...'`",
        )
    return {"uid": uid, "gid": gid, "groups": _groups_of(uid, gid)}


def _ids(user: str, group: str) -> tuple[int, int]:
    uid, gid = _user(user) if user else (os.geteuid(), os.getegid())
    return uid, _group(group) if group else gid


def _say_who(plan: DialectPlan, console: Console, ids: tuple[int, int]) -> None:
    """Tell user and group as the original does, if they were asked for."""
    if any(plan.asked["user"]) and not plan.values["show"]["is_quiet"]:
        console.note(f"Using uid:{ids[0]}, gid:{ids[1]}.")


def _say_root(plan: DialectPlan, console: Console) -> None:
    """Root measures what root may: not without anybody noticing.

    Raises
    ------
    DialectError : with ``--compat``, as the original.
    """
    if plan.common["is_compat"]:
        raise DialectError(
            'You must use the "-u" switch when running as root.', "write -u root, or another user"
        )
    console.note(
        "iolab: note: it runs as root, whom permissions and reserved space do not hold; -u USER "
        "runs as somebody else"
    )


def _user(text: str) -> tuple[int, int]:
    """Number and first group of a user; a number need not be known."""
    try:
        entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        if text.isdecimal() and int(text) < (1 << 32) - 1:
            return int(text), _group(_NOBODYS_GROUP)
        names = [entry.pw_name for entry in pwd.getpwall()]
        raise DialectError(
            f"Can't find user {text}{nearest(text, names)}", "leave -u out: it need not be said"
        ) from None
    return entry.pw_uid, entry.pw_gid


def _group(text: str) -> int:
    try:
        return (grp.getgrgid(int(text)) if text.isdecimal() else grp.getgrnam(text)).gr_gid
    except (KeyError, OverflowError):
        names = [entry.gr_name for entry in grp.getgrall()]
        raise DialectError(
            f"Can't find group {text}{nearest(text, names)}", "leave -g out: it need not be said"
        ) from None


def _groups_of(uid: int, gid: int) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        return [gid]


def set_semaphores(plan: DialectPlan, console: Console) -> bool:
    """Make or remove the semaphores, if that is all that is asked.

    Raises
    ------
    DialectError : there is no such user.
    TestbedError : there are none, or they belong to another user.
    """
    copies: int | None = plan.asked.get("semaphores")
    if copies is None:
        return False
    ids = _ids(*plan.asked["user"])
    if ids == (os.geteuid(), os.getegid()):
        _say_who(plan, console, ids)
    else:
        console.note("iolab: note: semaphores belong to who types this; all users may use them")
    words = ["remove"] if copies < 0 else ["make", str(copies)]
    tell_agent("semaphores", *words, hint="see `ipcs -s`")
    console.result(
        "Semaphore removed." if copies < 0 else f"Creating semaphore for {copies} procs."
    )
    return True


def with_numbers(plan: DialectPlan) -> DialectPlan:
    """The same plan, its random numbers read from their file if it names one.

    Raises
    ------
    DialectError : the file cannot be read, or holds none or too many.
    """
    name: str | None = plan.asked.get("random_file")
    if name is None:
        return plan
    source = {"kind": "given", "values": _numbers(Path(name))}

    def drawn(tenant: Json) -> Json:
        draws = tenant.get("draws")
        return {**tenant, "draws": {**draws, "source": source}} if draws else tenant

    rows = list[Json]()
    for row in plan.rows:
        workload: Json = row["workload"]
        phases = [
            {**phase, "tenants": [drawn(tenant) for tenant in phase["tenants"]]}
            for phase in workload["phases"]
        ]
        rows.append({**row, "workload": {**workload, "phases": phases}})
    return replace(plan, values={**plan.values, "rows": rows})


def _numbers(path: Path) -> list[int]:
    """Whole numbers of 32 bits, high byte first, without their signs."""
    try:
        with path.open("rb") as file:
            content = file.read(_NUMBERS_MAX * _NUMBER_BYTES + 1)
    except OSError as error:
        raise DialectError(
            f"-Z {path} cannot be read: {error.strerror}",
            "name a file of numbers, or use -z SEED",
        ) from None
    count = len(content) // _NUMBER_BYTES
    if count == 0 or len(content) > _NUMBERS_MAX * _NUMBER_BYTES:
        raise DialectError(
            f"-Z {path} holds {'no number' if count == 0 else f'more than {_NUMBERS_MAX} numbers'}",
            f"use 1 to {_NUMBERS_MAX} numbers of 4 bytes, for instance of generate_randfile",
        )
    return [abs(number) for number in struct.unpack(f">{count}i", content[: 4 * count])]


def answer_prompts(
    stop: StopSwitch, console: Console, proceed: Callable[[], None]
) -> Callable[[Mapping[str, Any]], None]:
    """What is done when the measuring waits: its number is printed and a line is read."""

    def on_progress(params: Mapping[str, Any]) -> None:
        if params.get("message") != "waiting" or "number" not in params:
            return
        console.result(f"\n{params['number']}:")
        if _read_line(stop):
            proceed()

    return on_progress


def _read_line(stop: StopSwitch) -> bool:
    """Whether a line, or the end of the input, came before somebody stopped it."""
    descriptor = sys.stdin.fileno()
    for _ in range(_LINE_BYTES_MAX):
        # Not beyond the line's end: what follows answers the next prompt.
        select.select([descriptor, stop], [], [])
        if stop.presses:
            return False
        if os.read(descriptor, 1) in (b"", b"\n"):
            break
    return True


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
