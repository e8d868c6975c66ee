"""Block traces of the trials of a run: one file each, and its stage times in the record.

The agent records while a trial is measured, its preparation included; what a phase did is taken
from between the release of its workers and the end of the last one. The simulator writes the same
file, with the events of its queues.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.digest import sha256
from iolab.errors import RefusedError, StudyError, TraceError
from iolab.json_text import read_json
from iolab.run.attendant import Attendant
from iolab.run.core import Core
from iolab.store.owner import make_directories
from iolab.store.users_files import NOTHING, made_empty, removed_if_empty
from iolab.study.plan import Trial
from iolab.study.trace_words import ALL_BLOCK_EVENTS, TraceEvents
from iolab.testbed.model import Testbed

if TYPE_CHECKING:
    from iolab.protocol import (
        OutputFile,
        PhaseRecord,
        PhaseTrace,
        Record,
        StageTimes,
        TrialSpec,
    )

FOLDER: Final = "traces"
"""Folder of traces in the results directory."""
ENDING: Final = ".iotrace"
_STAGES: Final = ("Q2D", "D2C", "Q2C")
_QUANTILES: Final = ("p50", "p99")
TRACE_METRICS: Final = tuple(
    f"{stage.lower()}_ns_{quantile}" for stage in _STAGES for quantile in _QUANTILES
)
"""Stage times that are metrics of a cell."""
_CHUNK_BYTES: Final = 1 << 20
_COUNTS_MIN: Final = {"p50": 1, "p99": 1000}
_READS, _WRITES, _DISCARDS = 0, 1, 2
"""Places of directions in the counts of a trace."""
BLOCK_METRICS: Final = (
    "block_read_bytes",
    "block_write_bytes",
    "block_requests",
    "bios_per_request",
    "request_bytes_mean",
    "in_flight_mean",
    "in_flight_max",
)
"""Work of the devices, as metrics of a cell."""


class Traces(Attendant):
    """Lets the agent record each trial, and measures what it has recorded."""

    def __init__(self, out_dir: Path, core: Core, events: TraceEvents) -> None:
        self._folder = out_dir / FOLDER
        self._core = core
        self._events = events
        self._path: Path | None = None
        self._made: os.stat_result | None = None

    @contextmanager
    def around(self, trial: Trial) -> Generator[None, None, None]:
        """Make the trial's file; one that nothing was written to goes again."""
        self._make_folder()
        self._path = self._fresh(trial.trial_id)
        try:
            self._made = made_empty(self._path, NOTHING)
        except OSError as error:
            raise TraceError(
                f"{self._path} cannot be written: {error.strerror or error}",
                "make room, or run it without --trace",
            ) from None
        try:
            yield
        finally:
            removed_if_empty(self._path, self._made)

    def _make_folder(self) -> None:
        """Make the directory of the traces, the user's own; a link could lead anywhere.

        Raises
        ------
        RefusedError : something else has the name.
        """
        if self._folder.is_symlink():
            raise RefusedError(
                f"{self._folder} is a symbolic link: nothing was written where it leads",
                "remove it, or choose another --out",
            )
        make_directories(self._folder)

    def _fresh(self, trial_id: str) -> Path:
        """A name that nothing has: a trial that is repeated leaves its first trace alone."""
        path, number = self._folder / f"{trial_id}{ENDING}", 1
        while path.is_symlink() or path.exists():
            number += 1
            path = self._folder / f"{trial_id}-{number}{ENDING}"
        return path

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec with the file that is to be filled."""
        del trial
        assert self._path is not None, "`around` made it"
        assert self._made is not None, "`around` made it"
        return with_trace(spec, self._path, self._made, self._events)

    def measured(self, trial: Trial, record: Record) -> None:
        """Add name and digest of the file, and the stage times of each phase."""
        del trial
        told = record.get("trace")
        if told is None or self._path is None:
            return
        told["file"] = f"{FOLDER}/{self._path.name}"
        told["sha256"] = _digest(self._path)
        for phase in record.get("phases", ()):
            phase["trace"] = self._stages(phase)

    def _stages(self, phase: PhaseRecord) -> PhaseTrace:
        """Counts and stage times of what happened during a phase."""
        begin_ns = int(phase["started_ns"])
        span = (begin_ns, begin_ns + int(phase.get("parent_ns") or phase["elapsed_ns"]))
        inputs = ([(str(self._path), None)], [])
        told = self._core.trace_stages(inputs, "device", "stages", span)
        report = read_json(told)["report"]
        rows = cast("list[StageTimes]", report["stages"])
        return {
            "stages": {row["stage"]: row for row in rows},
            "devices": report["devices"],
        }


def with_trace(spec: TrialSpec, path: Path, made: os.stat_result, events: TraceEvents) -> TrialSpec:
    """The spec with the empty file that a trace of the trial is to be written into."""
    output: OutputFile = {
        "path": str(path.parent.resolve() / path.name),
        "device": made.st_dev,
        "inode": made.st_ino,
    }
    layers = list(events.layers)
    return {**spec, "trace": {"output": output, "events": events.block, "layers": layers}}


def stage_metrics(phase: PhaseRecord) -> dict[str, float]:
    """Stage times of a phase that was recorded; tails only where enough requests lie beyond.

    Times of zero are left out: a simulated request may be at the driver at once.
    """
    trace = phase.get("trace")
    stages: Mapping[str, StageTimes] = trace["stages"] if trace else {}
    found = dict[str, float]()
    for stage in _STAGES:
        row = stages.get(stage)
        if row is None:
            continue
        values = {"p50": row["p50_ns"], "p99": row["p99_ns"]}
        for quantile in _QUANTILES:
            if row["count"] >= _COUNTS_MIN[quantile] and values[quantile] > 0:
                found[f"{stage.lower()}_ns_{quantile}"] = float(values[quantile])
    return found


def block_metrics(phase: PhaseRecord) -> dict[str, float]:
    """Work of the devices during a phase that was recorded; amounts that are zero are left out.

    Of several devices, as the members of a software RAID, amounts and mean depths are sums.
    """
    trace = phase.get("trace")
    devices = trace["devices"] if trace else []
    counts = [device["counts"] for device in devices]

    def done(direction: int, unit: str) -> int:
        return sum(int(one["completed_of"][direction][unit]) for one in counts)

    moved = (_READS, _WRITES)
    requests = sum(done(direction, "count") for direction in (*moved, _DISCARDS))
    transfers = sum(done(direction, "count") for direction in moved)
    entered = sum(int(way["count"]) for one in counts for way in one["queued"][: _DISCARDS + 1])
    found = {
        "block_read_bytes": done(_READS, "bytes"),
        "block_write_bytes": done(_WRITES, "bytes"),
        "block_requests": requests,
        "bios_per_request": entered / max(1, requests),
        "request_bytes_mean": sum(done(way, "bytes") for way in moved) / max(1, transfers),
        "in_flight_mean": sum(float(device["in_flight"]["mean"]) for device in devices),
        "in_flight_max": max((int(device["in_flight"]["max"]) for device in devices), default=0),
    }
    return {name: float(value) for name, value in found.items() if value > 0}


def check_trace(events: TraceEvents, testbed: Testbed) -> None:
    """Refuse events that a testbed does not have.

    Raises
    ------
    StudyError : its operations reach no block layer, or it is simulated, which has block events
        alone.
    """
    if testbed.is_simulated and not events.is_usual:
        wrong = [word for word in events.words if word != ALL_BLOCK_EVENTS]
        raise StudyError(
            f"a trace of {testbed.text} cannot have {', '.join(wrong)}: the simulator writes all "
            "block events, and no others",
            "leave these out (--trace, trace = true), or use --on loop:1g",
        )
    if testbed.has_null_target:
        raise StudyError(
            f"--trace records block events, and no operation on {testbed.text} reaches a device",
            "leave it out, or use --on loop:1g or --on sim:PROFILE",
        )


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
