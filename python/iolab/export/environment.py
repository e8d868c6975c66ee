"""Surroundings of a trial, as comments: machine, file system, knobs, cache, memory.

Everything here stays a comment in what is exported: it would change the machine of whoever runs
the file, and names devices of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.pattern import pattern
from iolab.store.rows import StudyData
from iolab.study.factors import find_factor, scheduler_of
from iolab.study.treatment import Treatment

if TYPE_CHECKING:
    from iolab.protocol import Action

_CPU_FILES: Final = {
    "cpu.governor": "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "cpu.no_turbo": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "cpu.boost": "/sys/devices/system/cpu/cpufreq/boost",
}
"""Knobs of the CPUs: where each of them is."""
_FIRST_KNOBS: Final = ("driver_queue_depth", "scheduler", "nr_requests")
"""A switch of the scheduler resets what depends on it, so it comes before the others."""

_PLAIN_COMMAND: Final = pattern(r"[\w@%+=:,./^ -]+")
"""Words that a shell takes as they are: records may come from anybody."""


@frozen
class Site:
    """Place in which a treatment ran."""

    machine: str
    data: StudyData
    devices: tuple[str, ...]
    """Devices whose knobs were switched."""
    actions: tuple[Action, ...]
    """Actions that made and mounted the file system; empty if it was there before, or not yet
    made.
    """


def comment(line: str) -> str:
    """A comment of a job file or a shell script; no text of a study can end it and begin more."""
    return "# " + "".join(sign if sign.isprintable() else " " for sign in line)


def environment_lines(treatment: Treatment, site: Site) -> Iterator[str]:
    """Lines without comment signs; a command for root begins with ``$``."""
    study = site.data.study
    yield f"Measured on: {site.machine}."
    yield f"Testbed: {study.testbed}."
    if study.is_simulated:
        yield "no equivalent: the stack was simulated; what follows asks a real one the same."
    effective = treatment.effective
    if "fs" in effective:
        yield from _made(effective, site)
    elif study.kind == "real":
        kind, options = (site.data.facts.get(f"fs.{name}", "?") for name in ("type", "options"))
        yield f"File system, which iolab found there: {kind}, mounted with {options}."
    yield from _knob_lines(effective, site)


def _made(effective: Mapping[str, str], site: Site) -> Iterator[str]:
    if not site.actions:
        yield (
            f"File system: {effective['fs']}, mkfs options {effective['mkfs_options']}, mount "
            f"options {effective['mount_options']} (no trial has made it yet)."
        )
        return
    yield "File system, made afresh for the trials that share it; the device was iolab's own:"
    for action in site.actions:
        command = str(action.get("detail", ""))
        if _PLAIN_COMMAND.fullmatch(command):
            yield f"$ {command}"
        else:
            yield f"no equivalent: a command with signs that a shell obeys: {command!r}"


def _knob_lines(effective: Mapping[str, str], site: Site) -> Iterator[str]:
    knobs = [name for name in effective if find_factor(name).is_knob]
    if not knobs:
        return
    if site.data.study.is_simulated:
        yield "Simulated queue: " + ", ".join(f"{name} = {effective[name]}" for name in knobs) + "."
        return
    yield "Knobs; all others had the values of the report's section Environment:"
    order = sorted(knobs, key=lambda name: (_rank(name), name))
    for device in site.devices or ("DEVICE",):
        for name in order:
            if not name.startswith(("vm.", "cpu.")):
                yield from _device_knob(name, effective, f"/sys/block/{device}/queue")
    for name in order:
        if name.startswith("vm."):
            value = quote(effective[name])
            yield f"$ echo {value} > /proc/sys/vm/{name.removeprefix('vm.')}"
        elif name in _CPU_FILES:
            value = quote(effective[name])
            yield f"$ for file in {_CPU_FILES[name]}; do echo {value} > $file; done"


def _rank(name: str) -> int:
    return _FIRST_KNOBS.index(name) if name in _FIRST_KNOBS else len(_FIRST_KNOBS)


def _device_knob(name: str, effective: Mapping[str, str], queue: str) -> Iterator[str]:
    value, queue = quote(effective[name]), quote(queue)
    owner = scheduler_of(name)
    if name == "driver_queue_depth":  # Under none, nr_requests is the depth of the driver.
        yield f"$ echo none > {queue}/scheduler && echo {value} > {queue}/nr_requests"
        if "scheduler" not in effective:
            yield "  (then switch back to the scheduler that was there)"
    elif owner is None:
        yield f"$ echo {value} > {queue}/{name}"
    elif effective.get("scheduler", owner) == owner:
        yield f"$ echo {value} > {queue}/iosched/{name.partition('.')[2]}"
