"""Requests of a command beside measuring: another user, CPUs, random numbers of a file.

Users and groups are looked up here and taken by the measuring child.
"""

from __future__ import annotations

import grp
import os
import pwd
import struct
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from iolab.errors import DialectError, StudyError
from iolab.frozen import replace
from iolab.json_text import write_json
from iolab.run.attendant import Attendant
from iolab.run.observer import Observer
from iolab.study.model import DialectRow, DialectWorkload, Study
from iolab.study.plan import Trial
from iolab.testbed.model import Testbed
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.protocol import Phase, RunAs, SourceGiven, Tenant, TrialSpec

_NOBODYS_GROUP: Final = "nogroup"
_NUMBER_BYTES: Final = 4
_NUMBERS_MAX: Final = 1 << 16


class Asked(Attendant):
    """Adds to a trial's spec who measures, and what is waited for."""

    def __init__(self, who: Mapping[str, RunAs | None]) -> None:
        self._who = who

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec with the user that the measuring child becomes, and its semaphores."""
        workload = trial.treatment.workload
        if not isinstance(workload, DialectWorkload):
            return spec
        waits, user = workload.request.get("waits"), self._who.get(workload.name)
        spec = spec.copy()
        if waits is not None:
            spec["waits"] = waits
        if user is not None:
            spec["run_as"] = user
        return spec


def asked(study: Study, testbed: Testbed, observer: Observer) -> Asked:
    """Attendants of the trials of a study whose commands ask for such things.

    Raises
    ------
    DialectError : there is no such user or group, or only root could become it.
    """
    who: dict[str, RunAs | None] = {}
    for workload in study.workloads:
        if not isinstance(workload, DialectWorkload):
            continue
        name, group = workload.request.get("user") or ("", "")
        if name or group:
            who[workload.name] = run_as((name, group), testbed, observer)
        elif loads_library(workload) and not testbed.is_simulated:
            name, group = _invoking_user()
            if name:
                who[workload.name] = run_as((name, group), testbed, observer)
    return Asked(who)


def loads_library(workload: DialectWorkload) -> bool:
    """Tell whether clients of a store load its library: never as root for somebody else."""
    return any(
        tenant.get("kv")
        for row in workload.rows
        for phase in row.workload["phases"]
        for tenant in phase["tenants"]
    )


def _invoking_user() -> tuple[str, str]:
    """User and group for whom sudo(8) runs this; empty: whoever it is."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    is_sudo = os.geteuid() == 0 and user.isdecimal() and group.isdecimal()
    return (user, group) if is_sudo and int(user) != 0 else ("", "")


def fulfilled(study: Study) -> Study:
    """The same study, with children on their CPUs and random numbers read from their files.

    Raises
    ------
    DialectError : such a file cannot be read, or holds none or too many.
    StudyError : there is no such CPU.
    """
    workloads = [
        _fulfilled(one) if isinstance(one, DialectWorkload) else one for one in study.workloads
    ]
    return replace(study, workloads=tuple(workloads))


def _fulfilled(workload: DialectWorkload) -> DialectWorkload:
    first, name = workload.request.get("first_cpu"), workload.request.get("random_file")
    if first is None and name is None:
        return workload
    numbers: SourceGiven | None = None
    if name is not None:
        numbers = {"kind": "given", "values": _numbers(Path(name))}

    def changed(row: DialectRow) -> DialectRow:
        described = row.workload.copy()
        if numbers is not None:
            described["phases"] = [_with_numbers(phase, numbers) for phase in described["phases"]]
        if first is not None:
            described["pin_cpus"] = _cpus(first)
        return replace(row, description=write_json(described))

    return replace(workload, rows=tuple(changed(row) for row in workload.rows))


def _cpus(first: int) -> list[int]:
    """Number of the CPU that was asked for, and of those after it."""
    count = os.cpu_count() or 1
    if first >= count:
        raise StudyError(f"there is no CPU {first}", f"use 0 to {count - 1}")
    return [(first + step) % count for step in range(count)]


def _with_numbers(phase: Phase, source: SourceGiven) -> Phase:
    tenants: list[Tenant] = []
    for tenant in phase["tenants"]:
        draws = tenant.get("draws")
        tenants.append({**tenant, "draws": {**draws, "source": source}} if draws else tenant)
    return {**phase, "tenants": tenants}


def run_as(user: tuple[str, str], testbed: Testbed, observer: Observer) -> RunAs | None:
    """User that the measuring child becomes, None if it stays the same.

    Parameters
    ----------
    user : name or number of the user and of the group, as typed; at least one is not empty.

    Raises
    ------
    DialectError : there is no such user or group, or only root could become it.
    """
    is_root = os.geteuid() == 0
    if testbed.is_simulated:
        observer.note("iolab: note: -u and -g mean nothing in a simulation")
        return None
    name, group = user
    uid, gid = ids_of(name, group)
    if not is_root and uid != os.geteuid():
        raise DialectError(
            f"-u {name}: only root can run as another user",
            f"write `sudo iolab bonnie++ -u {quote(name)} ...`, or leave -u out",
        )
    if not is_root and gid not in {os.getegid(), *os.getgroups()}:
        raise DialectError(
            f"-g {group}: only root can run as a group that one is not in",
            f"write `sudo iolab bonnie++ -u {uid} -g {quote(group)} ...`, or leave it out",
        )
    is_agent_root = is_root or testbed.needs_root
    if (uid, gid) == (os.geteuid(), os.getegid()) and is_root == is_agent_root:
        return None
    if not is_agent_root:
        raise DialectError(
            f"-g {group or gid}: without root one runs with one's first group",
            f"write `sg {quote(str(group or gid))} -c 'iolab bonnie++ ...'`",
        )
    return {"uid": uid, "gid": gid, "groups": _groups_of(uid, gid)}


def ids_of(user: str, group: str) -> tuple[int, int]:
    """Numbers of a user and a group; empty is who runs this."""
    uid, gid = _user(user) if user else (os.geteuid(), os.getegid())
    return uid, _group(group) if group else gid


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
