"""From a planned trial to the trial spec of the agent protocol.

A pure function: levels become a stack, knobs, cache and limits; the workload is lowered by the
typed builders of `iolab._core`, never as text of some dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from iolab import units
from iolab.json_text import read_json, write_json
from iolab.run.core import Core
from iolab.study.dialects import find_dialect
from iolab.study.estimate import time_limit_ns
from iolab.study.factors import DEFAULT_OPTIONS, find_factor, label_delay_ns
from iolab.study.model import (
    DialectRow,
    DialectWorkload,
    IozoneWorkload,
    MixedWorkload,
    Stream,
)
from iolab.study.plan import Plan, Trial
from iolab.study.stream_keys import asked_keys
from iolab.testbed.model import RESERVE_BYTES

if TYPE_CHECKING:
    from iolab.protocol import (
        Cache,
        Durability,
        FlagName,
        Flush,
        FsyncChoice,
        IoGroup,
        IozoneRequest,
        IozoneTest,
        LockPolicy,
        MixedRequest,
        Stack,
        StreamRequest,
        TrialSpec,
        Verify,
        WorkersAs,
        Workload,
    )

_LEVELS: Final = 8
PROBE_BYTES: Final = 64 << 10
_LimitField: TypeAlias = Literal[
    "max_read_bytes_per_s",
    "max_write_bytes_per_s",
    "max_read_ops_per_s",
    "max_write_ops_per_s",
]
_LIMIT_FIELDS: Final[dict[str, _LimitField]] = {
    "max_read": "max_read_bytes_per_s",
    "max_write": "max_write_bytes_per_s",
    "max_read_iops": "max_read_ops_per_s",
    "max_write_iops": "max_write_ops_per_s",
}
_LIST_SEPARATORS: Final[dict[str, Callable[[str], list[str]]]] = {
    "mkfs_options": str.split,
    "mount_options": lambda text: text.split(","),
}


def trial_spec(trial: Trial, core: Core, *, is_fresh_fs: bool) -> TrialSpec:
    """Trial spec of `trial`.

    Parameters
    ----------
    trial : what is to be run.
    core : workload builders.
    is_fresh_fs : make the file system anew before this trial.

    Raises
    ------
    StudyError : the builders refuse the workload.
    """
    spec = _around(trial, _workload(trial, core), is_fresh_fs=is_fresh_fs)
    workload = trial.treatment.workload
    if isinstance(workload, MixedWorkload) and workload.changes:
        spec["changes"] = [
            {"at_ns": change.at_ns, "knobs": dict(change.knobs)} for change in workload.changes
        ]
    groups = _io_groups(trial)
    if groups:
        spec["io_groups"] = groups
    return spec


def probe_spec(trial: Trial, core: Core) -> TrialSpec:
    """Trial spec that makes the file system of `trial`, sets its knobs and writes 64 KiB."""
    least: IozoneRequest = {
        "tests": ["write"],
        "file_bytes": PROBE_BYTES,
        "io_size_bytes": PROBE_BYTES,
        "workers": 1,
        "depth": 1,
        "durability": "none",
        "fsync": "none",
        "stride": 1,
        "fsync_every": 0,
        "flush": "fsync",
        "vectors": 1,
        "flags": [],
        "lock": "none",
        "is_preallocated": False,
        "is_cold": True,
        "content": "incompressible",
        "engine": "psync",
        "workers_as": "threads",
        "access": "plain",
        "seed": trial.seed,
        "verify": "none",
    }
    workload = read_json(core.iozone_workload(write_json(least)))
    spec = _around(trial, workload, is_fresh_fs=True)
    spec["memory_limit_bytes"] = None
    return spec


def _around(trial: Trial, workload: Workload, *, is_fresh_fs: bool) -> TrialSpec:
    """Trial spec with the surroundings that the levels of `trial` give to a workload."""
    effective = trial.treatment.effective
    memory_limit = effective["memory_limit"]
    return {
        "trial": trial.trial_id,
        "stack": _stack(effective),
        "is_fresh_fs": is_fresh_fs and "fs" in effective,
        "knobs": _knobs(effective),
        "cache": cast("Cache", effective["cache"]),
        "memory_limit_bytes": None if memory_limit == "none" else units.parse_bytes(memory_limit),
        "reserve_bytes": RESERVE_BYTES,
        "time_limit_ns": time_limit_ns(trial.treatment),
        "workload": workload,
    }


def _stack(effective: dict[str, str]) -> Stack | None:
    if "fs" not in effective:
        return None
    options = {
        name: [] if effective[name] == DEFAULT_OPTIONS else split(effective[name])
        for name, split in _LIST_SEPARATORS.items()
    }
    return {
        "fs": effective["fs"],
        "mkfs_options": options["mkfs_options"],
        "mount_options": options["mount_options"],
        "has_external_journal": effective["external_journal"] == "true",
    }


def _knobs(effective: dict[str, str]) -> dict[str, str]:
    return {name: level for name, level in effective.items() if find_factor(name).is_knob}


def _workload(trial: Trial, core: Core) -> Workload:
    workload, row = trial.treatment.workload, trial.treatment.row
    if row is not None and isinstance(workload, DialectWorkload):
        return _described(workload, row, trial)
    if isinstance(workload, IozoneWorkload):
        lowered = core.iozone_workload(write_json(_iozone_input(workload, trial)))
    elif isinstance(workload, MixedWorkload):
        lowered = core.mixed_workload(write_json(_mixed_input(workload, trial)))
    else:
        raise AssertionError(f"{trial.treatment.name} has no row")
    return read_json(lowered)


def _described(workload: DialectWorkload, row: DialectRow, trial: Trial) -> Workload:
    """Description of a row, with the random numbers of the round where it has none of its own."""
    if find_dialect(workload.dialect).is_seeded_by_round:
        return {**row.workload, "seed": trial.seed}
    return row.workload


def _iozone_input(workload: IozoneWorkload, trial: Trial) -> IozoneRequest:
    effective = trial.treatment.effective
    flags = effective["flags"]
    return {
        "tests": [cast("IozoneTest", test) for test in workload.tests],
        "file_bytes": units.parse_bytes(effective["file_size"]),
        "io_size_bytes": units.parse_bytes(effective["record_size"]),
        "workers": int(effective["workers"]),
        "depth": int(effective["depth"]),
        "durability": cast("Durability", effective["durability"]),
        "fsync": cast("FsyncChoice", effective["fsync"]),
        "stride": workload.stride,
        "fsync_every": _count_or_zero(effective["fsync_every"]),
        "flush": cast("Flush", effective["flush"]),
        "vectors": int(effective["vectors"]),
        "flags": _flags(() if flags == DEFAULT_OPTIONS else flags.split(",")),
        "lock": cast("LockPolicy", effective["lock"]),
        "is_preallocated": effective["preallocate"] == "true",
        "is_cold": effective["cache"] == "cold" and not trial.treatment.is_direct,
        "content": "incompressible",
        "engine": effective["engine"],
        "workers_as": cast("WorkersAs", effective["workers_as"]),
        "access": "direct" if trial.treatment.is_direct else "plain",
        "seed": trial.seed,
        "verify": cast("Verify", effective["verify"]),
    }


def _flags(names: Sequence[str]) -> list[FlagName]:
    return [cast("FlagName", name) for name in names]


def _mixed_input(workload: MixedWorkload, trial: Trial) -> MixedRequest:
    delay_ns = label_delay_ns(trial.treatment.effective.get("label", ""))
    effective = trial.treatment.effective
    streams: list[StreamRequest] = [
        {
            **asked_keys(stream),
            "name": stream.name,
            "read_share": stream.read_share,
            "pattern": stream.pattern,
            "io_size_bytes": stream.io_size_bytes,
            "depth": stream.depth,
            "workers": stream.workers,
            "file_bytes": stream.file_bytes,
            "think_ns": stream.think_ns + delay_ns,
            "share": _share(stream),
        }
        for stream in workload.streams
    ]
    return {
        "name": workload.name,
        "duration_ns": workload.duration_ns,
        "streams": streams,
        "cuts_ns": [change.at_ns for change in workload.changes],
        "engine": effective["engine"],
        "workers_as": cast("WorkersAs", effective["workers_as"]),
        "access": "direct" if trial.treatment.is_direct else "plain",
        "seed": trial.seed,
        "verify": cast("Verify", effective["verify"]),
    }


def _share(stream: Stream) -> float | None:
    """Share that a stream is promised relative to others.

    Best-effort levels count as BFQ maps them to weights: 8 - level (Linux block/bfq-iosched.h).
    """
    if stream.cgroup_weight is not None:
        return float(stream.cgroup_weight)
    if stream.priority is not None and stream.priority.class_ == "be":
        return float(_LEVELS - stream.priority.level)
    return None


def _io_groups(trial: Trial) -> list[IoGroup]:
    workload, row = trial.treatment.workload, trial.treatment.row
    groups: list[IoGroup] = []
    for asked in row.control_groups if row is not None else ():
        groups.append({"tenants": list(asked.tenants), "weight": asked.weight})
    for stream in workload.streams if isinstance(workload, MixedWorkload) else ():
        if stream.has_cgroup:
            group: IoGroup = {"tenants": [stream.name], "weight": stream.cgroup_weight}
            for name, value in stream.limits:
                group[_LIMIT_FIELDS[name]] = value
            groups.append(group)
    return groups


def _count_or_zero(level: str) -> int:
    return int(level) if level.isdecimal() else 0


def check_specs(plan: Plan, core: Core) -> list[TrialSpec]:
    """Lower every treatment once, so that nonsense is refused before anything is touched.

    Returns
    -------
    list of trial specs : one for each treatment, to be asked whether a testbed can do it.

    Raises
    ------
    StudyError : the builders refuse a workload.
    """
    return [trial_spec(trial, core, is_fresh_fs=True) for trial in plan.round_trials(1)]
