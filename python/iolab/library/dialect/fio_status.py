"""Interim results of fio's jobs (`--status-interval`) and their line of progress (`--eta`).

The agent tells what the workers of the running phase have done so far (`so_far` of its event
`progress`), and the results of phases that have ended. What is shown is made by the compiled half:
results by the renderer of the final ones, the line by `crates/iolab-dialect/src/fio/eta.rs`.
Results go where the final ones go, the line to standard error. In simulation nobody tells anything,
because time is virtual.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final, cast

from iolab.library.dialect import fio
from iolab.run.observer import Observer
from iolab.run.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from iolab import protocol
    from iolab.library.dialect.plan import DialectCore, DialectPlan
    from iolab.protocol import (
        FioProgressLine,
        FioTransferred,
        Interim,
        PhaseRecord,
        Record,
        ShownByFio,
        TrialSpec,
    )

NAME: Final = "fio"
_STDERR: Final = 2
_LINE_NS: Final = 1_000_000_000
"""Time between two lines of progress, as with fio."""
_SLACK_NS: Final = 50_000_000
"""Interim results come a little later than they are due."""
_ENDED: Final = "ended"


class Display:
    """Results and lines of progress while jobs run; none if the command line asks for none."""

    def __init__(self, plan: DialectPlan, core: DialectCore, console: Observer) -> None:
        self._plan, self._core, self._console = plan, core, console
        show = cast("ShownByFio", plan.values["show"]) if plan.dialect == NAME else None
        self._status_ns = show.get("status_ns", 0) if show is not None else 0
        self._newline_ns = show.get("eta_newline_ns", 0) if show is not None else 0
        eta = show.get("eta", "auto") if show is not None else "never"
        self._is_kept = eta == "always" and not os.isatty(_STDERR)
        self._has_line = eta == "always" or (eta == "auto" and os.isatty(_STDERR))
        self.begin()

    def begin(self) -> None:
        """Forget what an earlier run of the jobs has shown."""
        now_ns = time.monotonic_ns()
        self._ended: list[PhaseRecord] = []
        self._began_ns = self._phase_ns = self._shown_ns = self._kept_ns = self._line_ns = now_ns
        self._before: FioTransferred = {"read_bytes": 0, "write_bytes": 0, "reads": 0, "writes": 0}

    @property
    def has_line(self) -> bool:
        """True if a line of progress is shown, so that no other one is."""
        return self._has_line

    def spec(self, spec: TrialSpec) -> TrialSpec:
        """The spec, with interim results if any are shown."""
        wanted = [ns for ns in (self._status_ns, self._has_line * _LINE_NS) if ns]
        if not wanted:
            return spec
        interim: Interim = {"every_ns": min(wanted), "has_times": self._status_ns > 0}
        return {**spec, "interim": interim}

    def heard(
        self, params: protocol.Progress, show: Callable[[Mapping[str, object]], None]
    ) -> None:
        """Show what was heard, if it is time.

        Parameters
        ----------
        params : progress of the trial.
        show : prints an event of the dialect where results belong.
        """
        told, now_ns = params.get("so_far"), time.monotonic_ns()
        if told is None:
            return
        if params["message"] == _ENDED:
            self._ended.append(told)
            self._phase_ns = now_ns
            return
        if not self._ended and told["tenants"]:
            # The clock of fio begins with its jobs, and not with what is done before.
            self._began_ns = self._phase_ns = min(now_ns, now_ns - told["elapsed_ns"])
        if self._status_ns and now_ns - self._shown_ns >= self._status_ns - _SLACK_NS:
            self._shown_ns = now_ns
            record = {
                "phases": [*self._ended, told],
                "elapsed_ns": now_ns - self._began_ns,
                "started_at_unix_ns": time.time_ns() - (now_ns - self._began_ns),
            }
            self._console.clear_line()
            show({"event": "row", **fio.whole(cast("Record", record))})
        if self._has_line:
            self._show_line(told, now_ns)

    def _show_line(self, told: PhaseRecord, now_ns: int) -> None:
        event = {
            "event": "progress",
            "phases": [*self._ended, told],
            "ended": len(self._ended),
            "before": self._before,
            "interval_ns": now_ns - self._line_ns,
            "phase_ns": now_ns - self._phase_ns,
            "elapsed_ns": now_ns - self._began_ns,
        }
        text = self._core.dialect_render(self._plan.dialect, self._plan.text, json.dumps(event))
        line = cast("FioProgressLine", json.loads(text))
        self._before, self._line_ns = line["moved"], now_ns
        is_kept = self._newline_ns and now_ns - self._kept_ns >= self._newline_ns - _SLACK_NS
        if self._is_kept or is_kept:
            self._kept_ns = now_ns
            self._console.clear_line()
            self._console.note(line["line"])
            return
        self._console.progress(Progress("phase", None, 0, None, None, None, line["line"]))
