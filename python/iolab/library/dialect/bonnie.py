"""Needs of bonnie++'s command line beyond those of all dialects.

Semaphores are made by the agent, which knows the system calls; a prompt is printed and answered.
What the original writes to standard error, a table or its progress, is written there after each
run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import DialectError
from iolab.library.dialect.plan import DialectCore, DialectPlan
from iolab.readable import wait_readable
from iolab.run.dialect_requests import ids_of
from iolab.run.observer import Observer
from iolab.run.stop import StopSwitch
from iolab.testbed.command import tell_agent
from iolab.testbed.model import Testbed

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.library.dialect.results import PhaseResult, RowResult
    from iolab.protocol import ShownByBonnie

NAME: Final = "bonnie++"
_LINE_BYTES_MAX: Final = 4096


def tell_user(plan: DialectPlan, testbed: Testbed, console: Observer) -> None:
    """Tell the name of the user that measures.

    Raises
    ------
    DialectError : root measures without having been asked to, and ``--compat`` is given.
    """
    if testbed.is_simulated:
        return
    user, group = plan.asked.get("user", ("", ""))
    if user or group:
        _say_who(plan, console, ids_of(user, group))
    elif os.geteuid() == 0:
        _say_root(plan, console)


def _say_who(plan: DialectPlan, console: Observer, ids: tuple[int, int]) -> None:
    """Tell user and group as the original does, if they were asked for."""
    show = cast("ShownByBonnie", plan.values["show"])
    if any(plan.asked["user"]) and not show["is_quiet"]:
        console.note(f"Using uid:{ids[0]}, gid:{ids[1]}.")


def _say_root(plan: DialectPlan, console: Observer) -> None:
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
        "iolab: note: it runs as root: permissions are not checked and reserved space may be used. "
        "-u USER runs as another user"
    )


def set_semaphores(plan: DialectPlan, console: Observer) -> bool:
    """Make or remove the semaphores, if that is all that is asked.

    Raises
    ------
    DialectError : there is no such user.
    TestbedError : there are none, or they belong to another user.
    """
    copies: int | None = plan.asked.get("semaphores")
    if copies is None:
        return False
    ids = ids_of(*plan.asked["user"])
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


def answer_prompts(
    stop: StopSwitch, console: Observer, proceed: Callable[[], None]
) -> Callable[[protocol.Progress], None]:
    """Answer when the measuring waits: its number is printed and a line is read."""

    def on_progress(params: protocol.Progress) -> None:
        if params.get("message") != "waiting" or "number" not in params:
            return
        console.result(f"\n{params['number']}:")
        if _read_line(stop):
            proceed()

    return on_progress


def _read_line(stop: StopSwitch) -> bool:
    """Tell whether a line, or the end of the input, came before somebody stopped it."""
    descriptor = sys.stdin.fileno()
    for _ in range(_LINE_BYTES_MAX):
        # Not beyond the line's end: what follows answers the next prompt.
        wait_readable([descriptor, stop])
        if stop.presses:
            return False
        if os.read(descriptor, 1) in (b"", b"\n"):
            break
    return True


def with_latencies(phases: Sequence[PhaseResult], record: protocol.Record) -> list[PhaseResult]:
    """The same phases, each with its longest call."""
    longest = {
        phase["name"]: max(
            (
                histogram["max"]
                for tenant in phase["tenants"]
                for kind in ("read", "sync", "write")
                if (histogram := tenant["service"].get(kind))
            ),
            default=0,
        )
        for phase in record["phases"]
    }
    return [{**phase, "latency_ns_max": longest[phase["name"]]} for phase in phases]


def show_aside(plan: DialectPlan, core: DialectCore, row: RowResult, console: Observer) -> None:
    """Write to standard error what the original writes there."""
    event = json.dumps({"event": "row_aside", **row})
    text = core.dialect_render(plan.dialect, plan.text, event)
    if text:
        console.note(text.removesuffix("\n"))
