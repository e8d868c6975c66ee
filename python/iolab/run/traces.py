"""Block traces of the trials of a run: one file each, and its stage times in the record.

The agent records while a trial is measured, its preparation included; what a phase did is taken
from between the release of its workers and the end of the last one. Left out: simulated trials,
whose events `iolab sim trace` writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab.digest import sha256
from iolab.errors import RefusedError, StudyError, TraceError
from iolab.run.attendant import Attendant
from iolab.run.core import Core
from iolab.store.owner import make_directories
from iolab.store.users_files import NOTHING, made_empty, removed_if_empty
from iolab.study.plan import Trial

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
"""Where traces lie, in the results directory."""
ENDING: Final = ".iotrace"
_STAGES: Final = ("Q2D", "D2C", "Q2C")
_QUANTILES: Final = ("p50", "p99")
TRACE_METRICS: Final = tuple(
    f"{stage.lower()}_ns_{quantile}" for stage in _STAGES for quantile in _QUANTILES
)
"""Stage times that are metrics of a cell."""
_CHUNK_BYTES: Final = 1 << 20
_COUNTS_MIN: Final = {"p50": 1, "p99": 1000}


class Traces(Attendant):
    """Lets the agent record each trial, and measures what it has recorded."""

    def __init__(self, out_dir: Path, core: Core) -> None:
        self._folder = out_dir / FOLDER
        self._core = core
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
        path = self._path.parent.resolve() / self._path.name
        output: OutputFile = {
            "path": str(path),
            "device": self._made.st_dev,
            "inode": self._made.st_ino,
        }
        return {**spec, "trace": {"output": output, "events": "full"}}

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
        told = json.loads(
            self._core.trace_stages([(str(self._path), None)], "device", "stages", span)
        )
        report: dict[str, Any] = told["report"]
        rows: list[StageTimes] = report["stages"]
        return {
            "stages": {row["stage"]: row for row in rows},
            "devices": report["devices"],
        }


def stage_metrics(phase: PhaseRecord) -> dict[str, float]:
    """Stage times of a phase that was recorded; tails only where enough requests lie beyond."""
    trace = phase.get("trace")
    stages: Mapping[str, StageTimes] = trace["stages"] if trace else {}
    found = dict[str, float]()
    for stage in _STAGES:
        row = stages.get(stage)
        if row is None:
            continue
        values = {"p50": row["p50_ns"], "p99": row["p99_ns"]}
        for quantile in _QUANTILES:
            if row["count"] >= _COUNTS_MIN[quantile]:
                found[f"{stage.lower()}_ns_{quantile}"] = float(values[quantile])
    return found


def refuse_without_devices(testbed_text: str, *, is_simulated: bool) -> None:
    """Refuse traces of a testbed that has no kernel below it.

    Raises
    ------
    StudyError : it is simulated.
    """
    if is_simulated:
        raise StudyError(
            f"--trace records block events of the kernel, and {testbed_text} is simulated",
            "leave it out; `iolab sim trace` writes the events of a simulated stack",
        )


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
