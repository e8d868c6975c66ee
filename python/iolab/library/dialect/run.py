"""A command line of another program: a study whose rows are printed as the original prints them.

Standard output is the dialect's alone; what iolab has to say goes to standard error. The run itself
is that of every study (`iolab.run.conduct`); what stands here looks on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, MismatchError, StoppedError, TestbedError
from iolab.frozen import replace
from iolab.library.dialect import (
    bonnie,
    filebench,
    fio,
    fio_commands,
    fio_logs,
    fio_status,
    fio_verified,
    mkfile,
    side,
    ycsb,
)
from iolab.library.dialect.files import (
    check_workbook,
    elsewhere,
    refuse_own_files,
    refuse_unnamed,
    write_files,
)
from iolab.library.dialect.plan import DialectCore, DialectPlan, study_of
from iolab.library.services import Services
from iolab.run import outputs
from iolab.run.attendant import Attendant
from iolab.run.conduct import measure
from iolab.run.observer import Observer
from iolab.run.options import OUTPUT_ROOT, RunOptions
from iolab.run.prepare import Prepared, confirmed, prepare
from iolab.run.progress import Progress
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.db import Store
from iolab.store.derived import PAGE_CACHE_SHARE
from iolab.store.users_files import FLAG, Allowed
from iolab.study.model import Study
from iolab.study.plan import Trial
from iolab.study.words import PAST_THE_CACHE
from iolab.testbed.agent import LostAgentError
from iolab.testbed.runner import Runner
from iolab.version import iolab_version

if TYPE_CHECKING:
    from iolab import Study as PublicStudy
    from iolab import protocol
    from iolab.library.dialect.results import PhaseResult, RowResult, WorkerResult
    from iolab.protocol import Record, TrialSpec, Workload

_TIME_LIMIT_NS: Final = 30 * 24 * 3600 * 1_000_000_000
"""A table may take days, and the original has no limit."""


class LineConsole:
    """The console of a command line: no lines about trials, which are the dialect's to show."""

    def __init__(self, console: Observer) -> None:
        self._console = console
        self.note = console.note
        self.remark = console.remark
        self.result = console.result
        self.clear_line = console.clear_line
        self.ask = console.ask
        self.has_own_line = False
        """True if the dialect shows a line of progress of its own."""

    def progress(self, progress: Progress) -> None:
        """Show a phase where the line can be taken back."""
        has_own = self.has_own_line and progress.kind == "phase" and progress.trial is not None
        if progress.kind in ("phase", "notice") and not has_own:
            self._console.progress(progress)


class Line(Attendant):
    """Prints each row as it ends, and ends the run if one fails."""

    def __init__(self, plan: DialectPlan, core: DialectCore, console: Observer) -> None:
        self.n_ok = 0
        """Rows that this start measured."""
        self.n_failed = 0
        """Files that could not be made, where the next ones are tried all the same."""
        self._plan = plan
        self._core = core
        self._console = console
        self._folder: Path | None = None
        self._fio_folder: Path | None = None
        self._ycsb_folder: Path | None = None
        self._out_dir = Path()
        self._proceed: Callable[[], None] | None = None
        self._stop: StopSwitch | None = None
        self._results: list[RowResult] = []
        self._side_files = side.check_side_files(plan, core)
        self._output = fio.Output(plan)
        self._logs = fio_logs.check_logs(plan)
        self._saved = [*fio_commands.check_commands(plan), *fio_verified.check_states(plan)]
        self._ycsb_files = ycsb.files_of(plan)
        refuse_own_files(plan, self.written_files())
        self._status = fio_status.Display(plan, core, console)
        self._cache_shares: Mapping[str, float] = {}

    @property
    def plan(self) -> DialectPlan:
        """Plan of the line."""
        return self._plan

    @property
    def has_own_line(self) -> bool:
        """True if the dialect shows a line of progress of its own."""
        return self._status.has_line

    def written_files(self) -> list[Path]:
        """Files that the dialect writes beside its report."""
        workbook = self._plan.asked.get("workbook")
        named = [*self._output.files(), *([Path(workbook)] if workbook else [])]
        return [*self._side_files, *self._logs, *self._saved, *self._ycsb_files, *named]

    def begin(self, store: Store, runner: Runner, stop: StopSwitch) -> None:
        """Print the head, and the rows that an earlier start measured."""
        self._out_dir, self._stop = store.path.parent, stop
        self._proceed = runner.proceed
        ycsb.show_banner(self._plan, self._console)
        self._show(
            {
                "event": "begin",
                "began": time.ctime(),
                "version": iolab_version(),
                "machine": " ".join(os.uname()),
            }
        )
        for trial_id, record in store.contents.records():
            if record["status"] == "ok":
                self._show_row((int(trial_id[1:]) - 1) % len(self._plan.rows), record)

    @contextmanager
    def around(self, trial: Trial) -> Generator[None, None, None]:
        """Keep the logs of single operations until they are written where the dialect does."""
        del trial
        with (
            side.log_folder(self._plan, self._out_dir) as folder,
            fio_logs.log_folder(self._plan, self._out_dir) as fio_folder,
            ycsb.log_folder(self._plan, self._out_dir) as ycsb_folder,
        ):
            self._folder, self._fio_folder, self._ycsb_folder = folder, fio_folder, ycsb_folder
            fio_commands.run_commands(self._plan, self._console, is_before=True)
            filebench.run_commands(self._plan, self._console)
            self._status.begin()
            yield

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec with operations logged, and without a limit of time."""
        del trial
        logged = side.logged(self._plan, spec["workload"], self._folder)
        logged = fio_logs.logged(self._plan, logged, self._fio_folder)
        logged = ycsb.logged(logged, self._ycsb_folder)
        spec = mkfile.with_readings(self._plan, spec)
        spec = self._status.spec(spec)
        return {**spec, "workload": logged, "time_limit_ns": _TIME_LIMIT_NS}

    def heard(self, trial: Trial, params: protocol.Progress) -> None:
        """Answer a prompt, or print a line about the progress."""
        del trial
        ycsb.show_status(self._plan, params, self._console)
        self._status.heard(params, self._show_so_far)
        if self._stop is not None and self._proceed is not None:
            bonnie.answer_prompts(self._stop, self._console, self._proceed)(params)

    def measured(self, trial: Trial, record: Record) -> None:
        """Run the commands that follow.

        Raises
        ------
        IolabError : their output cannot be written.
        """
        del trial, record
        fio_commands.run_commands(self._plan, self._console, is_before=False)

    def stored(self, trial: Trial, record: Record) -> None:
        """Print a row.

        Raises
        ------
        MismatchError : storage gave back other data than was written.
        TestbedError : it failed, and another one would, too.
        """
        workload = self._workload_of(trial.position)
        side.write_side_files(self._plan, self._core, workload, record, self._folder)
        fio_logs.write_logs(self._plan, record, self._fio_folder)
        fio_verified.write_dumps(self._plan, record, self._console)
        fio_verified.write_states(self._plan, record)
        ycsb.write_histogram_logs(self._plan, self._core, record)
        if record["status"] == "ok":
            self.n_ok += 1
        if record["status"] != "interrupted" or self._plan.row_of_dialect.is_told_by_records:
            self._show_row(trial.position, record)
        mkfile.show_reports(self._plan, record, self._console)
        if record["status"] != "failed":
            return
        if not self._plan.row_of_dialect.keeps_files:
            if _has_mismatch(record):
                hint = "do not trust this storage before you know why"
                if _expects_written(workload):
                    hint = (
                        "this run wrote nothing: write the file first, with the same file, sizes, "
                        "seed and verify; if that was done, do not trust this storage"
                    )
                if any(one["code"] == "faults_injected" for one in record.get("warnings", [])):
                    hint = "[[faults]] of the stack file have lost them"
                elif record.get("simulation"):
                    hint = "the simulator has lost them: report this, with the job and the stack"
                raise MismatchError(str(record.get("error")), hint)
            raise TestbedError(str(record.get("error") or "the row failed without saying why"))
        self.n_failed += 1
        self._console.note(f"iolab: {record.get('error')}")

    def ended(self, store: Store) -> None:
        """Ask what of all that is stored was the page cache's."""
        self._cache_shares = store.cache_shares()

    @property
    def cache_shares(self) -> Mapping[str, float]:
        """Share of the bytes of each operation that never reached a device, where known."""
        return self._cache_shares

    def end(self) -> None:
        """Print the end, and write the files that the dialect writes there."""
        self._show({"event": "end", "rows": self._results})
        write_files(self._plan, self._core, self._results)
        self._output.write()

    def _workload_of(self, index: int) -> Workload:
        return self._plan.rows[index]["workload"]

    def _show(self, event: Mapping[str, object]) -> None:
        """Print what the dialect prints at an event."""
        text = self._core.dialect_render(self._plan.dialect, self._plan.text, json.dumps(event))
        if text and not self._output.takes(text):
            self._console.result(text.removesuffix("\n"))

    def _show_so_far(self, event: Mapping[str, object]) -> None:
        """Print interim results, also into the file of the results."""
        self._show(event)
        self._output.write()

    def _show_row(self, index: int, record: Record) -> None:
        is_ok = record["status"] == "ok"
        if self._plan.row_of_dialect.is_told_by_records:
            ycsb.show_operations(self._plan, self._ycsb_folder, self._console)
            raw = ycsb.raw_series(self._plan, self._ycsb_folder)
            self._show({"event": "row", **fio.whole(record), **raw})
            if not is_ok:
                self._output.write()
            return
        row: RowResult = {
            "index": index,
            "phases": row_phases(self._plan, self._workload_of(index), record),
            "is_failed": not is_ok,
        }
        if self._plan.dialect == bonnie.NAME:
            row["phases"] = bonnie.with_latencies(row["phases"], record)
            bonnie.show_aside(self._plan, self._core, row, self._console)
        if is_ok:
            self._results.append(row)
        self._show({"event": "row", **row})


def execute(
    dialect: str,
    words: Sequence[str],
    services: Services,
    console: Observer,
    root: Path = OUTPUT_ROOT,
) -> int:
    """Run one command line of a dialect; returns the exit code.

    Parameters
    ----------
    root : directory below which results go if the line names none with ``--out``.
    """
    core = cast("DialectCore", services.load_core())
    plan = DialectPlan.of_words(core, dialect, words)
    if plan.values["only_text"] is not None:
        for note in plan.values["notes"]:
            console.note(f"iolab: note: {note}")
        if text := plan.values["only_text"].rstrip("\n"):
            console.result(text)
        return 0
    if bonnie.set_semaphores(plan, console):
        return 0
    check_workbook(plan.asked.get("workbook"), plan.allowed)
    mkfile.check_virtual(plan)
    line = Line(plan, core, console)
    return _conduct(line, study_of(plan), replace(plan.options, root=root), services, console)


def conduct_line(
    study: PublicStudy, options: RunOptions, services: Services, console: Observer, source: Path
) -> int:
    """Run a stored command line again, or continue it; prints what the line itself would.

    A rehearsal names the files that it writes.

    Parameters
    ----------
    study : the stored study, with the words of the command line.
    options : how it is run; the options among the words are those of an earlier run.
    source : where it is stored.

    Raises
    ------
    RefusedError : it writes a file of the user's own, or one elsewhere that nobody named today.
    """
    from iolab.library.study import checked_study, is_testbed_from_file

    checked = checked_study(study)
    dialect, *words = checked.command
    core = cast("DialectCore", services.load_core())
    plan = DialectPlan.of_stored(core, dialect, words, Allowed.of(options.overwrite))
    check_workbook(plan.asked.get("workbook"), plan.allowed)
    line = Line(plan, core, console)
    refuse_unnamed(line.written_files(), plan.allowed, source)
    fio_commands.refuse_stored_commands(plan)
    fio_verified.refuse_archived_dumps(plan, source)
    filebench.refuse_stored_commands(plan)
    options = replace(options, is_testbed_from_file=is_testbed_from_file(study))
    if options.is_dry_run:
        from iolab.library.conducted import rehearsed

        is_drawn = checked.seed is None and not options.is_resumed
        prepared = prepare(checked, options, services.load_core(), services.analysis, console, line)
        rehearsed(prepared, is_drawn=is_drawn)
        for path in line.written_files():
            console.result(f"Beside the results it writes the file {path.absolute()}.")
        return 0
    options = replace(options, is_announced=False, failures_max=None)
    return _conduct(line, checked, options, services, console)


def _conduct(
    line: Line, study: Study, options: RunOptions, services: Services, console: Observer
) -> int:
    core, plan = services.load_core(), line.plan
    observer = LineConsole(console)
    observer.has_own_line = line.has_own_line
    for note in plan.values["notes"]:
        console.note(f"iolab: note: {note}")
    prepared = prepare(study, options, core, services.analysis, observer, line)
    names = [*options.overwrite, *map(str, elsewhere(line.written_files()))]
    if names:  # A stored line is not obeyed in this, so that who continues it says it again.
        named = "".join(f" {FLAG} {quote(name)}" for name in dict.fromkeys(names))
        continued_by = f"`iolab run {quote(str(prepared.out_dir))} --resume{named}`"
        prepared = replace(prepared, options=replace(options, continued_by=continued_by))
    if plan.dialect == bonnie.NAME:
        bonnie.tell_user(plan, prepared.testbed, console)
    code = _run(prepared, line, console)
    if prepared.testbed.has_null_target:
        console.note("iolab: note: no data were moved: these numbers are those of iolab itself")
    # bonnie++'s standard error is bonnie++'s, and fio tells what its devices did.
    elif plan.dialect == "iozone":
        _tell_cached(plan, line.cache_shares, console)
    return code


def _tell_cached(plan: DialectPlan, shares: Mapping[str, float], console: Observer) -> None:
    """Note that a table shows the page cache, and how it would show the device."""
    cached = [name for name, share in shares.items() if share >= PAGE_CACHE_SHARE]
    if not cached:
        return
    which = "these numbers" if len(cached) == len(shares) else f"numbers of {', '.join(cached)}"
    way = "a file larger than memory"
    option = PAST_THE_CACHE[plan.dialect]
    if option not in plan.words:
        way = f"{option} (direct I/O) or {way}"
    console.note(
        f"iolab: note: {which} are those of the page cache: most bytes never reached the device;"
        f" {way} shows the device"
    )


def _run(prepared: Prepared, line: Line, console: Observer) -> int:
    start_runner = prepared.choose_runner()
    prepared = confirmed(prepared, start_runner)
    made = outputs.missing_directories(prepared.out_dir)
    try:
        with pressed_by_signals() as stop:
            outcome, problem = measure(prepared, start_runner, stop)
        if outcome is not None and outcome.ending == "complete" and outcome.n_ok + line.n_failed:
            line.end()
            problem = None if line.n_failed else problem
    except IolabError as error:
        outcome, problem = None, error
    finally:
        console.clear_line()
    is_kept = line.n_ok or prepared.is_resumed or problem is None
    if not is_kept:
        outputs.discard(prepared.database, made)
    elif (line.n_ok or outcome is not None) and prepared.database.exists():
        _tell_stored(prepared.out_dir, console)
    if isinstance(problem, StoppedError) and (code := line.plan.row_of_dialect.stopped_code):
        told = str(problem) if is_kept else "stopped on request; what was measured is not stored"
        console.note(f"iolab: {told}")
        return code
    if problem is not None:
        raise _with_next_step(problem, prepared, is_begun_anew=not is_kept)
    return 1 if line.n_failed else 0


def _with_next_step(error: IolabError, prepared: Prepared, *, is_begun_anew: bool) -> IolabError:
    if is_begun_anew and isinstance(error, LostAgentError):
        return error.with_next_step("type the same command again")
    del prepared
    return error


def _expects_written(workload: Workload) -> bool:
    """Tell whether all that is read was to be written by a run before."""
    tenants = [tenant for phase in workload["phases"] for tenant in phase["tenants"]]
    return all(tenant.get("manner", {}).get("expects_written") for tenant in tenants)


def row_phases(plan: DialectPlan, workload: Workload, record: Record) -> list[PhaseResult]:
    """Phases of a row's record as the renderer takes them; one that failed is left out."""
    workload_phases = {phase["name"]: phase for phase in workload["phases"]}
    found: list[PhaseResult] = []
    for phase in record["phases"]:
        workers: list[WorkerResult] = []
        for child in side.children_of(plan, workload_phases[phase["name"]], phase):
            worker = child.report
            workers.append(
                {
                    "child": child.number,
                    "ops": worker["ops"],
                    "bytes": worker["bytes"],
                    "elapsed_ns": worker["elapsed_ns"],
                    "call_ns": worker["call_ns"],
                }
            )
            if worker.get("errors"):
                return found
        found.append(
            {
                "name": phase["name"],
                "elapsed_ns": phase["elapsed_ns"],
                "parent_ns": phase.get("parent_ns"),
                "cpu_ns": sum(side.cpu_times(phase)),
                "workers": workers,
            }
        )
    return found


def _has_mismatch(record: Record) -> bool:
    """True if something that was read is not what was written."""
    workers = (w for phase in record["phases"] for t in phase["tenants"] for w in t["workers"])
    return any(worker.get("mismatch_count") for worker in workers)


def _tell_stored(out_dir: Path, console: Observer) -> None:
    console.note(
        f"iolab: stored as run {out_dir.name} in {out_dir}: `iolab report {quote(str(out_dir))}` "
        "shows its latencies and caveats"
    )
