"""Conducting a study from the command line: from a checked study to results on disk."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from iolab import units
from iolab.cli import outputs
from iolab.cli.confirm import (
    Device,
    accepted_writes,
    check_key,
    confirm_erasure,
    confirm_wear,
)
from iolab.cli.console import Console
from iolab.cli.failures import not_measured
from iolab.cli.finish import Place, show_results_of
from iolab.cli.forecast import forecast, short_text
from iolab.cli.rehearsal import probe_stacks, rehearse_stacks
from iolab.cli.same_machine import check_same_machine
from iolab.cli.services import Services, Verdict
from iolab.cli.version import iolab_version
from iolab.cli.writes import begin_counting, open_counted, stored_history, wear_of
from iolab.errors import (
    AnalysisError,
    IolabError,
    MismatchError,
    RefusedError,
    StoppedError,
    StoreError,
    StudyError,
    TestbedError,
)
from iolab.run.campaign import Campaign, Outcome, Start
from iolab.run.core import Core
from iolab.run.record import caveats_of
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.run.trial import check_specs, trial_spec
from iolab.run.wear import Accepted, History, WriteBudget
from iolab.store.db import STORE_NAME, Origin, Store
from iolab.store.rows import Caveat, StudyData
from iolab.store.users_files import Allowed
from iolab.study.checks import FEW_ROUNDS
from iolab.study.factors import find_factor
from iolab.study.model import Study, TestbedRequest
from iolab.study.plan import Plan, make_plan, round_ops
from iolab.testbed.agent import LostAgentError, OpenTestbed, left_behind_text
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.installed import AS_ROOT
from iolab.testbed.model import DirectoryTestbed, Testbed, make_testbed, with_journal_device
from iolab.testbed.runner import Runner, StartRunner, choose_runner
from iolab.wording import counted

_SEED_MAX: Final = 1 << 31
MISMATCHES_SHOWN: Final = 10
"""Blocks that came back wrong are listed up to this number; the store has more of them."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """Everything decided before the first action."""

    plan: Plan
    testbed: Testbed
    out_dir: Path
    core: Core
    console: Console
    run_id: str
    is_resumed: bool
    started_ns: int
    judge: Callable[[StudyData], Verdict]
    is_other_machine_allowed: bool = False
    accepted: Accepted | None = None
    """What may be written to a whole device; None is as much as it takes."""
    writes: WriteBudget | None = None
    """What counts that, once it runs."""

    @property
    def database(self) -> Path:
        """Where the records go."""
        return self.out_dir / STORE_NAME

    @property
    def needs_root(self) -> bool:
        """Whether the testbed, or a factor in use, needs it."""
        is_asked = self.testbed.can_need_root and bool(_root_factors(self.plan.study))
        return self.testbed.needs_root or is_asked


def conduct(
    study: Study, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Run, continue or rehearse `study`; returns the exit code."""
    is_drawn = study.seed is None and not arguments.resume
    prepared = _prepare(study, arguments, services, console)
    for note in prepared.plan.notes:
        # A rehearsal ends with the rounds that will probably decide: one number is enough.
        if not (arguments.dry_run and note.code == FEW_ROUNDS):
            console.note(f"iolab: note: {note.message}: {note.hint}")
    _note_tiny_budget(prepared)
    # A rehearsal changes nothing, so it needs no root even where the study does.
    needs_root = prepared.needs_root and not arguments.dry_run
    start_runner = choose_runner(prepared.testbed, needs_root=needs_root)
    if arguments.dry_run:
        _rehearse(prepared, start_runner, arguments)
        if is_drawn:
            console.result(
                f"The order is that of seed {prepared.plan.seed}; the run draws another one, "
                f"unless it is given --seed {prepared.plan.seed}."
            )
        return 0
    prepared = _confirmed(prepared, start_runner, arguments)
    with ExitStack() as stack:
        stop = stack.enter_context(pressed_by_signals())
        outcome, problem = _measure(prepared, start_runner, stop)
    if outcome is not None:
        _tell_outcome(outcome, console)
    code = _show(prepared, services, outcome, arguments)
    if problem is not None:
        raise problem
    return code


def _prepare(
    study: Study, arguments: argparse.Namespace, services: Services, console: Console
) -> Conduct:
    """Decide and check everything that can be checked without touching anything."""
    started_ns = time.monotonic_ns()
    testbed = _testbed(study, arguments)
    study = replace(study, testbed=TestbedRequest(*testbed.request))
    if arguments.resume:
        named = Path(arguments.out) if arguments.out else outputs.latest_directory(study.name)
        outputs.check_begun(named)
        allowed = Allowed.of(arguments.overwrite)
        outputs.check_place_of_report(named, allowed, database=named / STORE_NAME)
        if study.seed is None:
            study = study.with_seed(outputs.stored_seed(named / STORE_NAME))
    else:
        named = Path(arguments.out) if arguments.out else outputs.fresh_directory(study.name)
        outputs.check_free(named)
        if study.seed is None:
            study = study.with_seed(secrets.randbelow(_SEED_MAX))
    Allowed.of(arguments.overwrite).refuse_useless(outputs.reports_in(named))
    plan = make_plan(study)
    if isinstance(testbed, DeviceTestbed):
        testbed = replace(testbed, protected=_protected(named), plan_digest=plan.digest)
        if arguments.dry_run:
            testbed = replace(testbed, erase_serial=arguments.erase_serial)
    core = services.load_core()
    check_specs(plan, core)
    testbed.check_space(plan.round_cost().file_bytes)
    return Conduct(
        plan=plan,
        testbed=testbed,
        out_dir=named,
        core=core,
        console=console,
        run_id=f"r-{uuid.uuid4().hex[:12]}",
        is_resumed=arguments.resume,
        started_ns=started_ns,
        judge=services.judge,
        is_other_machine_allowed=arguments.allow_other_machine,
    )


def _protected(out_dir: Path) -> tuple[str, ...]:
    """Where the results and this program lie: never on a device that is erased (rule R4)."""
    places = [out_dir.absolute(), Path(sys.executable).resolve(), Path(__file__).resolve()]
    return tuple(str(outputs.existing(place)) for place in places)


def _note_tiny_budget(prepared: Conduct) -> None:
    budget_ns = prepared.plan.study.budget_ns
    round_ns = prepared.testbed.expected_ns(prepared.plan.round_cost().duration_ns)
    if budget_ns is not None and round_ns is not None and round_ns > budget_ns:
        prepared.console.note(
            "iolab: note: not even one round may fit: it takes roughly "
            f"{units.format_duration_rounded(round_ns)} (estimate), the budget is "
            f"{units.format_duration_rounded(budget_ns)}: give a larger --budget"
        )


def _testbed(study: Study, arguments: argparse.Namespace) -> Testbed:
    options = dict(study.testbed.options)
    if arguments.image_dir:
        options["image_dir"] = arguments.image_dir
    if arguments.allow_knobs_on:
        options["allow_knobs_on"] = ",".join(arguments.allow_knobs_on)
    for name in ("precondition", "precondition_round"):
        if getattr(arguments, name):
            options[name] = getattr(arguments, name)
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, options)
    if not isinstance(testbed, DeviceTestbed):
        for flag in ("erase_serial", "accept_writes"):
            if getattr(arguments, flag) is not None:
                raise IolabError(
                    f"{testbed.text} erases no device: --{flag.replace('_', '-')} means nothing",
                    "leave it out",
                )
    accepted_writes(arguments)  # What is no size is said before anything is touched.
    has_journal = "true" in study.levels_in_use("external_journal")
    return with_journal_device(testbed) if has_journal else testbed


def _root_factors(study: Study) -> list[str]:
    held = [study.settings, *(workload.settings for workload in study.workloads)]
    names = [factor.name for factor in study.factors]
    names += [name for levels in held for name, _ in levels]
    wanting = [name for name in dict.fromkeys(names) if find_factor(name).needs_root]
    if study.has_real_time_streams:
        wanting.append("priority rt")
    if study.has_cgroups:
        wanting.append("cgroup_weight and limits")
    return [*wanting, *(name for name in study.knobs_changed if name not in wanting)]


# Measuring.


def _measure(
    prepared: Conduct, start_runner: StartRunner, stop: StopSwitch
) -> tuple[Outcome | None, IolabError | None]:
    """Run the campaign; an error after the first record does not hide what was stored."""
    outcome: Outcome | None = None
    with ExitStack() as stack:
        made = outputs.missing_directories(prepared.out_dir)
        # Before anything of the machine is touched, so that nothing is measured for nobody.
        open_store = _resumed_store if prepared.is_resumed else _new_store
        store = open_store(prepared, stack)
        n_known = len(store.finished_trials())
        try:
            writes = begin_counting(prepared.accepted, prepared.plan, prepared.testbed, stop, stack)
            prepared = replace(prepared, writes=writes)
            with start_runner(writes or stop, prepared.console.note) as runner:
                rehearse_stacks(
                    runner, prepared.run_id, prepared.testbed, prepared.plan, prepared.core
                )
                _greet(runner, prepared, is_dry_run=False)
                prepared.console.note(_announcement(prepared))
                opened = open_counted(runner, prepared.testbed, writes, stop)
                try:
                    _check_schedulers(prepared.plan.study, opened)
                    if prepared.is_resumed and not prepared.is_other_machine_allowed:
                        check_same_machine(store, opened.description.get("facts") or {})
                    if not prepared.is_resumed:
                        probe_stacks(runner, prepared.testbed, prepared.plan, prepared.core)
                    outcome = _run_campaign(prepared, store, runner, opened, stop)
                finally:
                    _close_testbed(runner, outcome)
        except IolabError as caught:
            is_nothing_new = len(store.finished_trials()) == n_known
            error = _with_next_step(caught, is_begun_anew=is_nothing_new and not n_known)
            if is_nothing_new:
                stack.close()
                # A full disk is told to be resumed from.
                if not prepared.is_resumed and not isinstance(error, StoreError):
                    outputs.discard(prepared.database, made)
                raise error from caught
            return outcome, error
        return outcome, _error_of(outcome) or not_measured(store, prepared.plan.study)


def _with_next_step(error: IolabError, *, is_begun_anew: bool) -> IolabError:
    """The same error; of a lost agent with what works: --resume needs something to continue."""
    if not isinstance(error, LostAgentError):
        return error
    return error.with_next_step(
        "type the same command again" if is_begun_anew else "continue with --resume"
    )


def _close_testbed(runner: Runner, outcome: Outcome | None) -> None:
    """Close in order if the runner is well; otherwise its end does it."""
    if outcome is not None:
        runner.close_testbed()


def _run_campaign(
    prepared: Conduct,
    store: Store,
    runner: Runner,
    opened: OpenTestbed,
    stop: StopSwitch,
) -> Outcome:
    console, caveats = prepared.console, caveats_of(opened.warnings)
    _note_caveats(console, caveats)
    session_id = store.begin_session(
        prepared.run_id,
        iolab_version=iolab_version(),
        testbed=opened.description,
        caveats=caveats,
    )
    start = Start(
        session_id=session_id,
        stop=stop,
        report=console.progress,
        spent_ns=time.monotonic_ns() - prepared.started_ns,
        is_decided=lambda: _is_decided(store, prepared.judge),
        rounds_for_width=lambda: _rounds_for_width(store, prepared),
        writes=prepared.writes,
    )
    campaign = Campaign(prepared.plan, store, runner, prepared.core, start)
    try:
        return campaign.run()
    finally:
        console.clear_line()


def _is_decided(store: Store, judge: Callable[[StudyData], Verdict]) -> bool:
    """Whether every headline comparison has a word, at the level of this look."""
    headline = getattr(judge(store.load_data()), "headline", [])
    return bool(headline) and all(c.effect.word not in ("undecided", "depends") for c in headline)


def _rounds_for_width(store: Store, prepared: Conduct) -> int | None:
    """Rounds that the pilot of a study with a wanted width asks for."""
    from iolab.stats.width import rounds_for_width

    width = prepared.plan.study.width
    headline = getattr(prepared.judge(store.load_data()), "headline", [])
    return None if width is None else rounds_for_width(headline, width)


def _resumed_store(prepared: Conduct, stack: ExitStack) -> Store:
    store = stack.enter_context(Store.open_writer(prepared.database))
    outputs.check_same_plan(store, prepared.plan)
    return store


def _new_store(prepared: Conduct, stack: ExitStack) -> Store:
    caveats = _store_caveats(prepared)
    _note_caveats(prepared.console, caveats)
    store = Store.create(
        prepared.database,
        prepared.plan,
        Origin(
            iolab_version(),
            prepared.testbed.text,
            kind=prepared.testbed.record_kind,
            caveats=tuple(caveats),
        ),
    )
    return stack.enter_context(store)


def _note_caveats(console: Console, caveats: Sequence[Caveat]) -> None:
    for caveat in caveats:
        console.note(f"iolab: note: {caveat.message}" + (f": {caveat.hint}" if caveat.hint else ""))


def _store_caveats(prepared: Conduct) -> list[Caveat]:
    """Warn if the results lie on the file system that is measured."""
    testbed = prepared.testbed
    if not isinstance(testbed, DirectoryTestbed):
        return []
    wanted = prepared.out_dir.resolve()
    out = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
    if out.stat().st_dev != testbed.path.stat().st_dev:
        return []
    return [
        Caveat(
            "store_on_tested_device",
            f"the results in {prepared.out_dir} lie on the file system that is measured; they are "
            "written between trials only",
            "choose an --out on another disk",
        )
    ]


def _greet(runner: Runner, prepared: Conduct, *, is_dry_run: bool) -> None:
    hello = runner.hello(prepared.run_id, is_dry_run=is_dry_run)
    if hello.open_journals and not is_dry_run:
        raise RefusedError(left_behind_text(hello.open_journals), "run `iolab restore` first")
    if prepared.needs_root and not hello.is_root and not is_dry_run:
        wanting = ", ".join(_root_factors(prepared.plan.study)) or prepared.testbed.text
        raise TestbedError(f"{wanting} needs root", f"run `{AS_ROOT} ...`")


def _check_schedulers(study: Study, opened: OpenTestbed) -> None:
    """Refuse a scheduler that the running kernel does not offer for these devices."""
    for level in study.levels_in_use("scheduler"):
        if level not in opened.schedulers:
            devices = ", ".join(opened.knob_devices) or "no device"
            offered = ", ".join(opened.schedulers) or "none to switch"
            raise StudyError(
                f"scheduler '{level}' is not offered for {devices}; this kernel offers {offered}",
                "leave it out, or load its module",
            )


def _announcement(prepared: Conduct) -> str:
    plan = prepared.plan
    study = plan.study
    rounds = counted(study.rounds, "round") if study.rounds else "as many rounds as fit"
    if study.width is not None:
        rounds = f"{f'at most {rounds}' if study.rounds else 'rounds'} for intervals of"
        rounds += f" ±{study.width * 100:.3g} %"
    budget = (
        f", at most {units.format_duration_rounded(study.budget_ns)}" if study.budget_ns else ""
    )
    return (
        f"iolab: {study.name} on {prepared.testbed.text}: "
        f"{counted(len(plan.treatments), 'treatment')}, {rounds}{budget}; {_round_text(prepared)}; "
        f"results in {prepared.out_dir}"
    )


def _round_text(prepared: Conduct) -> str:
    """What a round does to the testbed, and how long it may take."""
    plan, cost = prepared.plan, prepared.plan.round_cost()
    return prepared.testbed.round_text(cost.written_bytes, cost.duration_ns, round_ops(plan))


def _error_of(outcome: Outcome | None) -> IolabError | None:
    if outcome is None:
        return None
    if outcome.mismatches:
        trials = {text.partition(":")[0] for text in outcome.mismatches}
        return MismatchError(
            f"storage gave back other data than was written, in {len(trials)} of "
            f"{counted(outcome.n_ok + outcome.n_failed, 'trial')}; first: {outcome.mismatches[0]}",
            "the other trials are kept; do not trust this device or its file system before you "
            "know why",
        )
    if outcome.ending == "interrupted":
        return StoppedError(outcome.message, "finished trials are kept; continue with --resume")
    if outcome.ending == "writes":
        return RefusedError(f"stopped by the accepted amount: {outcome.message}", outcome.hint)
    if outcome.ending == "failing":
        return TestbedError(outcome.message, "correct the cause, then continue with --resume")
    if outcome.ending == "budget" and outcome.rounds_complete == 0:
        return StudyError(outcome.message)
    return None


# Showing.


def _tell_outcome(outcome: Outcome, console: Console) -> None:
    failed = f", {outcome.n_failed} failed" if outcome.n_failed else ""
    why = f"; {outcome.message}" if outcome.ending in ("budget", "decided") else ""
    for mismatch in outcome.mismatches[:MISMATCHES_SHOWN]:
        console.note(f"iolab: wrong data: {mismatch}")
    console.note(
        f"iolab: {counted(outcome.n_ok, 'trial')} finished{failed}, "
        f"{counted(outcome.rounds_complete, 'complete round')}{why}"
    )


def _show(
    prepared: Conduct, services: Services, outcome: Outcome | None, arguments: argparse.Namespace
) -> int:
    """Print the answer; a study that ended early may have none yet."""
    console, database = prepared.console, prepared.database
    allowed = Allowed.of(arguments.overwrite)
    place = Place(database, prepared.out_dir, database, units=arguments.units, allowed=allowed)
    try:
        return show_results_of(place, services, console, is_strict=arguments.strict)
    except AnalysisError as error:
        if outcome is not None and outcome.ending == "complete" and not outcome.mismatches:
            raise
        console.note(f"iolab: no verdict yet: {error}")
        return 0


# Whole devices.


def _confirmed(
    prepared: Conduct, start_runner: StartRunner, arguments: argparse.Namespace
) -> Conduct:
    """The same with the serial that the user has confirmed; asks where that is needed."""
    testbed = prepared.testbed
    if not isinstance(testbed, DeviceTestbed):
        return prepared
    with start_runner(None, prepared.console.note) as runner:
        _greet(runner, prepared, is_dry_run=True)
        opened = runner.open_testbed(testbed.agent_spec())
        runner.close_testbed()
    device = Device.of(opened.description["facts"])
    check_key(testbed, device, is_from_file=_is_from_file(arguments))
    serial = confirm_erasure(device, arguments.erase_serial, prepared.console)
    history = _history(prepared)
    wear = wear_of(prepared.plan, testbed, device, history)
    most = confirm_wear(wear, accepted_writes(arguments), prepared.console)
    accepted = None
    if most is not None:
        before = testbed.precondition_bytes(device.size_bytes)
        accepted = Accepted(most, device.size_bytes, before, history)
    return replace(prepared, testbed=replace(testbed, erase_serial=serial), accepted=accepted)


def _history(prepared: Conduct) -> History:
    """What earlier starts of this study wrote."""
    if not prepared.is_resumed:
        return History()
    return stored_history(prepared.plan, prepared.database)


def _tell_device(prepared: Conduct, opened: OpenTestbed, arguments: argparse.Namespace) -> None:
    """In a rehearsal: which device it is, what it would be asked and how much is written."""
    testbed, console = prepared.testbed, prepared.console
    if not isinstance(testbed, DeviceTestbed):
        return
    device = Device.of(opened.description["facts"])
    check_key(testbed, device, is_from_file=_is_from_file(arguments))
    wear = wear_of(prepared.plan, testbed, device, _history(prepared))
    asked = "nothing: it repeats a study" if device.is_confirmed else f"type: {device.phrase}"
    console.result(f"EVERYTHING on this device would be lost:\n{device.describe()}")
    console.result(f"  asked   {asked}\n  wear    {wear.describe()}")
    _note_caveats(console, caveats_of(opened.warnings))


def _is_from_file(arguments: argparse.Namespace) -> bool:
    """Whether the device is named in a study file, not on the command line."""
    return getattr(arguments, "study", None) is not None and not arguments.testbed


# Rehearsing.


def _rehearse(prepared: Conduct, start_runner: StartRunner, arguments: argparse.Namespace) -> None:
    """Print every action of the first round; nothing is changed."""
    console = prepared.console
    plan, study = prepared.plan, prepared.plan.study
    with start_runner(None, None) as runner:
        _greet(runner, prepared, is_dry_run=True)
        opened = runner.open_testbed(prepared.testbed.agent_spec())
        _check_schedulers(study, opened)
        _tell_device(prepared, opened, arguments)
        console.result(f"Nothing is changed. Study '{study.name}' would do this:")
        _print_actions("prepare the testbed", opened.actions, console)
        plot = None
        for trial in plan.round_trials(1):
            is_fresh = trial.is_plot_start or trial.treatment.whole_plot != plot
            record = runner.run_trial(trial_spec(trial, prepared.core, is_fresh_fs=is_fresh))
            plot = trial.treatment.whole_plot
            _print_actions(
                f"trial {trial.trial_id}: {trial.treatment.name}",
                record.get("actions", []),
                console,
            )
        _print_actions("restore", runner.close_testbed().get("actions", []), console)
    rounds = (
        counted(study.rounds, "round") if study.rounds else "as many rounds as the budget admits"
    )
    cost = plan.round_cost()
    order = ", each round in another order" if len(plan.treatments) > 1 else ""
    console.result(
        f"{rounds} of {counted(len(plan.treatments), 'treatment')}{order}; "
        f"{_round_text(prepared)}, files take "
        f"{units.format_bytes_rounded(cost.file_bytes)} at most."
    )
    console.result(short_text(forecast(plan, prepared.testbed)))


def _print_actions(title: str, actions: Any, console: Console) -> None:
    console.result(f"{title}")
    for action in actions:
        console.result(f"  {action_text(action)}")


def action_text(action: Mapping[str, Any]) -> str:
    """``[B] write_knob /sys/block/loop8/queue/scheduler: none -> bfq``."""
    detail = f": {action['detail']}" if action.get("detail") else ""
    return (
        f"[{action.get('class', '?')}] {action.get('kind', '?')} {action.get('target', '')}{detail}"
    )
