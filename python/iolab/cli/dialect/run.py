"""Running a dialect's plan: every row one trial, its output as the original prints it.

Standard output is the dialect's alone; what iolab has to say goes to standard error. One runner
serves all rows, and a row's record is stored before the next begins.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab.cli import outputs
from iolab.cli.console import Console
from iolab.cli.dialect import bonnie, side
from iolab.cli.dialect.files import check_workbook, write_files
from iolab.cli.dialect.plan import (
    KEEPING,
    DialectCore,
    DialectPlan,
    check_possible,
    foreign_reads,
    order_caveats,
    removed_files,
    replaceable,
    study_plan,
    testbed_of,
)
from iolab.cli.services import Services
from iolab.cli.version import iolab_version
from iolab.errors import IolabError, RefusedError, StoppedError, StudyError, TestbedError
from iolab.run.core import Core
from iolab.run.progress import Progress
from iolab.run.record import caveats_of, derive, failed_record
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.run.trial import surroundings
from iolab.store import made
from iolab.store.db import STORE_NAME, Origin, Store
from iolab.store.users_files import FLAG, Allowed
from iolab.study.plan import Plan, Trial
from iolab.testbed.agent import AgentError, LostAgentError, OpenTestbed
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.installed import AS_ROOT
from iolab.testbed.model import DirectoryTestbed, Testbed
from iolab.testbed.runner import Runner, StartRunner, choose_runner

if TYPE_CHECKING:
    from iolab.run.wear import Accepted, WriteBudget

_SEED_MAX: Final = 1 << 31
_FOREIGN_FILE: Final = "foreign_file"
"""Code of the agent's warning that a file of the user's own had been touched."""
_TIME_LIMIT_NS: Final = 30 * 24 * 3600 * 1_000_000_000
"""A table may take days, and the original has no limit."""
Json = Mapping[str, Any]


@dataclass(slots=True)
class Conduct:
    """One command line on its way."""

    plan: DialectPlan
    study: Plan
    testbed: Testbed
    out_dir: Path
    core: Any
    console: Console
    run_id: str
    results: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Rows that were measured, of all rounds, as the renderer takes them."""
    n_stored: int = 0
    n_failed: int = 0
    """Files that could not be made, where the next ones are tried all the same."""
    run_as: Json | None = None
    """Whom the measuring child becomes."""
    accepted: Accepted | None = None
    """What may be written to a whole device."""
    writes: WriteBudget | None = None

    @property
    def place(self) -> Path | None:
        """The user's directory, if files are worked on in it."""
        if isinstance(self.testbed, DirectoryTestbed) and self.testbed.is_in_place:
            return self.testbed.path
        return None

    @property
    def database(self) -> Path:
        """Where the records go."""
        return self.out_dir / STORE_NAME

    def show(self, event: Json) -> None:
        """Print what the dialect prints at an event."""
        core: DialectCore = self.core
        text = core.dialect_render(self.plan.dialect, self.plan.text, json.dumps(event))
        if text:
            self.console.result(text.removesuffix("\n"))


def execute(dialect: str, words: Sequence[str], services: Services, console: Console) -> int:
    """Run one command line of a dialect; returns the exit code."""
    core: Any = services.load_core()
    plan = DialectPlan.of_words(core, dialect, words)
    if plan.values["only_text"] is not None:
        console.result(str(plan.values["only_text"]).rstrip("\n"))
        return 0
    if bonnie.set_semaphores(plan, console):
        return 0
    testbed = testbed_of(plan)
    check_possible(plan, testbed, core)
    run_as = None
    if dialect == bonnie.NAME:
        plan = bonnie.with_numbers(plan)
        run_as = bonnie.run_as(plan, testbed, console)
    study = study_plan(plan, testbed, seed=int.from_bytes(os.urandom(8)) % _SEED_MAX)
    testbed.check_space(max(study.round_cost().file_bytes, plan.kept_bytes))
    _check_files(plan, testbed, core)
    asked = plan.common["out"]
    out_dir = Path(asked) if asked else outputs.fresh_directory(dialect)
    outputs.check_free(out_dir)
    run_id = f"{dialect.rstrip('+')}-{os.urandom(4).hex()}"
    conduct = Conduct(plan, study, testbed, out_dir, core, console, run_id, run_as=run_as)
    start_runner = choose_runner(testbed, needs_root=testbed.needs_root)
    conduct = _confirmed(conduct, start_runner)
    for note in plan.values["notes"]:
        console.note(f"iolab: note: {note}")
    for name in foreign_reads(plan, conduct.place) if conduct.place is not None else ():
        console.note(f"iolab: note: {name} was not made by iolab: it is only read, and it stays")
    for name in removed_files(plan, conduct.place) if conduct.place is not None else ():
        console.note(
            f"iolab: note: {name} is overwritten, as {FLAG} says, and removed at the end; -w keeps "
            "what is written"
        )
    _measure(conduct, start_runner)
    return 1 if conduct.n_failed else 0


def _check_files(plan: DialectPlan, testbed: Testbed, core: DialectCore) -> None:
    """Refuse what must not be written, and permissions for files that are not written at all."""
    allowed, workbook = Allowed.of(plan.common["overwrite"]), plan.asked.get("workbook")
    check_workbook(workbook, allowed)
    written = side.check_side_files(plan, core)
    if isinstance(testbed, DirectoryTestbed) and testbed.is_in_place:
        written += [testbed.path / name for name in plan.values["files"]]
    allowed.refuse_useless([*written, *([Path(workbook)] if workbook else [])])


def _confirmed(conduct: Conduct, start_runner: StartRunner) -> Conduct:
    """The same with the serial of the device that may be erased; asks where that is needed."""
    testbed = conduct.testbed
    if not isinstance(testbed, DeviceTestbed):
        return conduct
    from iolab.cli.confirm import Device, check_key, confirm_erasure, confirm_wear
    from iolab.cli.writes import wear_of
    from iolab.run.wear import Accepted, History

    with start_runner(None, conduct.console.note) as runner:
        runner.hello(conduct.run_id, is_dry_run=True)
        opened = runner.open_testbed(testbed.agent_spec())
        runner.close_testbed()
    device = Device.of(opened.description["facts"])
    check_key(testbed, device, is_from_file=False)
    serial = confirm_erasure(device, testbed.erase_serial, conduct.console)
    wear = wear_of(conduct.study, testbed, device, History())
    most = confirm_wear(wear, None, conduct.console)
    accepted = None if most is None else Accepted(most, device.size_bytes)
    return replace(conduct, testbed=replace(testbed, erase_serial=serial), accepted=accepted)


def _measure(conduct: Conduct, start_runner: StartRunner) -> None:
    made = outputs.missing_directories(conduct.out_dir)
    origin = Origin(
        iolab_version(),
        conduct.testbed.text,
        kind=conduct.testbed.record_kind,
        caveats=order_caveats(conduct.study, conduct.testbed),
    )
    store = Store.create(conduct.database, conduct.study, origin)
    try:
        with store, pressed_by_signals() as stop, ExitStack() as stack:
            if conduct.accepted is not None:
                from iolab.cli.writes import begin_counting

                conduct.writes = begin_counting(
                    conduct.accepted, conduct.study, conduct.testbed, stop, stack
                )
            try:
                with start_runner(conduct.writes or stop, conduct.console.note) as runner:
                    _run(conduct, store, runner, stop)
            finally:
                conduct.console.clear_line()
    except IolabError as error:
        if conduct.n_stored:
            _tell_stored(conduct)
        else:
            outputs.discard(conduct.database, made)
        if isinstance(error, LostAgentError):  # A command line cannot be continued.
            where = (
                ", with another --out" if conduct.n_stored and conduct.plan.common["out"] else ""
            )
            raise error.with_next_step(f"type the same command again{where}") from error
        raise
    _tell_stored(conduct)


def _run(conduct: Conduct, store: Store, runner: Runner, stop: StopSwitch) -> None:
    hello = runner.hello(conduct.run_id)
    if hello.open_journals:
        raise RefusedError(
            "an earlier run left changes that are not undone", "run `iolab restore` first"
        )
    if conduct.testbed.needs_root and not hello.is_root:
        raise TestbedError(f"{conduct.testbed.text} needs root", f"run `{AS_ROOT} ...`")
    opened = _opened(conduct, runner, stop)
    session_id = store.begin_session(
        conduct.run_id,
        iolab_version=iolab_version(),
        testbed=opened.description,
        caveats=caveats_of(opened.warnings),
    )
    conduct.show(
        {
            "event": "begin",
            "began": time.ctime(),
            "version": iolab_version(),
            "machine": " ".join(os.uname()),
        }
    )
    trials = list(conduct.study.trials(conduct.plan.rounds))
    store.add_trials(trials)
    for trial in trials:
        if stop.presses:
            raise StoppedError("stopped on request", "what was measured is stored")
        if conduct.writes is not None and (reason := conduct.writes.why_not(trial)):
            raise RefusedError(reason, "what was measured is stored")
        row = conduct.plan.rows[trial.position]
        with side.log_folder(conduct.plan, conduct.out_dir) as folder:
            record = _run_trial(conduct, store, (runner, stop), trial, folder)
            _store(conduct, store, session_id, trial, record)
            side.write_side_files(conduct.plan, conduct.core, row, record, folder)
        _show_row(conduct, trial.position, record)
    runner.close_testbed()
    event = {"event": "end", "rows": conduct.results}
    conduct.show(event)
    write_files(conduct.plan, conduct.core, conduct.results)


def _opened(conduct: Conduct, runner: Runner, stop: StopSwitch) -> OpenTestbed:
    """The testbed, made; what is counted of it only where something may be erased."""
    if conduct.writes is None:
        return runner.open_testbed(conduct.testbed.agent_spec())
    from iolab.cli.writes import open_counted

    return open_counted(runner, conduct.testbed, conduct.writes, stop)


def _run_trial(
    conduct: Conduct,
    store: Store,
    served: tuple[Runner, StopSwitch],
    trial: Trial,
    folder: Path | None,
) -> dict[str, Any]:
    runner, stop = served
    spec = surroundings(trial, is_fresh_fs=trial.ordinal == 1)
    spec["time_limit_ns"] = _TIME_LIMIT_NS
    workload = _pinned(conduct.plan, conduct.plan.rows[trial.position]["workload"])
    spec["workload"] = side.logged(conduct.plan, workload, folder)
    beside = {"waits": conduct.plan.asked.get("waits"), "run_as": conduct.run_as}
    spec |= {key: value for key, value in beside.items() if value is not None}
    place = conduct.place
    if place is not None:
        spec["files"] = {"replaceable": replaceable(conduct.plan, place)}
    answer = bonnie.answer_prompts(stop, conduct.console, runner.proceed)
    n_planned = conduct.plan.rounds * len(conduct.plan.rows)

    begun = dict[Path, made.Birth]()

    def on_progress(params: Json) -> None:
        if place is not None and "begun" in params:
            births = params["begun"].items()
            new = {place / name: made.Birth(**birth) for name, birth in births}
            begun.update(new)
            made.begin(new)
            return
        answer(params)
        message = str(params.get("phase") or params.get("message") or "")
        conduct.console.progress(
            Progress(
                "phase", trial, conduct.n_stored, n_planned, conduct.plan.rounds, None, message
            )
        )

    started_unix_ns = time.time_ns()
    counted = conduct.writes.counted() if conduct.writes is not None else 0
    with store.quiet():
        try:
            record = runner.run_trial(spec, on_progress)
        except AgentError as error:
            record = failed_record(trial.trial_id, str(error), started_at_unix_ns=started_unix_ns)
    if conduct.writes is not None:
        conduct.writes.keep(record, trial, counted)
    if place is not None:
        marks = dict(record.pop("made", {}))
        written = {place / name: made.Mark(**mark) for name, mark in marks.items()}
        made.remember(written, ended=begun)
    return record


def _pinned(plan: DialectPlan, workload: Json) -> Json:
    """The workload with children on the CPU that was asked for and those after it."""
    first = plan.asked.get("first_cpu")
    if first is None:
        return workload
    count = os.cpu_count() or 1
    if first >= count:
        raise StudyError(f"there is no CPU {first}", f"use 0 to {count - 1}")
    return {**workload, "pin_cpus": [(first + step) % count for step in range(count)]}


def _store(conduct: Conduct, store: Store, session_id: int, trial: Trial, record: Any) -> None:
    derived = derive(record, _core(conduct))
    store.commit_record(trial.trial_id, session_id, derived)
    if derived.status == "ok":
        conduct.n_stored += 1


def _core(conduct: Conduct) -> Core:
    return conduct.core


def _show_row(conduct: Conduct, index: int, record: Json) -> None:
    """Print a row, and end if it failed."""
    is_ok = record["status"] == "ok"
    row: dict[str, Any] = {
        "index": index,
        "phases": row_phases(conduct.plan, conduct.plan.rows[index], record),
        "is_failed": not is_ok,
    }
    if conduct.plan.dialect == bonnie.NAME:
        row["phases"] = bonnie.with_latencies(row["phases"], record)
        bonnie.show_aside(conduct.plan, conduct.core, row, conduct.console)
    if is_ok:
        conduct.results.append(row)
    if is_ok or record["status"] != "interrupted":
        conduct.show({"event": "row", **row})
    if is_ok:
        return
    if record["status"] == "interrupted":
        raise StoppedError("stopped on request", "what was measured is stored")
    codes = {str(warning.get("code")) for warning in record.get("warnings", ())}
    if _FOREIGN_FILE in codes:
        raise RefusedError(str(record.get("error")), f"name another, or allow it with {FLAG} FILE")
    if conduct.plan.dialect == KEEPING:
        conduct.n_failed += 1
        conduct.console.note(f"iolab: {record.get('error')}")
        return
    raise TestbedError(str(record.get("error") or "the row failed without saying why"))


def row_phases(plan: DialectPlan, row: Json, record: Json) -> list[dict[str, Any]]:
    """Phases of a row's record as the renderer takes them; one that failed is left out."""
    workload_phases = {phase["name"]: phase for phase in row["workload"]["phases"]}
    found = list[dict[str, Any]]()
    for phase in record["phases"]:
        workers = list[dict[str, Any]]()
        for child in side.children_of(plan, workload_phases[phase["name"]], phase):
            worker = child.report
            workers.append(
                {
                    "child": child.number,
                    **{key: int(worker[key]) for key in ("ops", "bytes", "elapsed_ns", "call_ns")},
                }
            )
            if worker.get("errors"):
                return found
        cpu: Json = phase.get("cpu") or {}
        found.append(
            {
                "name": phase["name"],
                "elapsed_ns": int(phase["elapsed_ns"]),
                "parent_ns": phase.get("parent_ns"),
                "cpu_ns": int(cpu.get("user_ns") or 0) + int(cpu.get("system_ns") or 0),
                "workers": workers,
            }
        )
    return found


def _tell_stored(conduct: Conduct) -> None:
    number = conduct.out_dir.name
    conduct.console.note(
        f"iolab: stored as run {number} in {conduct.out_dir}: `iolab report {conduct.out_dir}` "
        "shows latencies, what reached the device, and intervals"
    )
