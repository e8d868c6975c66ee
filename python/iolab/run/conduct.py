"""The conductor: from a prepared study to records in a store, whoever asked for it.

Command lines of other programs, study files and the library run here. What happens is told to an
observer (`iolab.run.observer`); nothing is printed, asked or parsed here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import (
    IolabError,
    MismatchError,
    RefusedError,
    StoppedError,
    StoreError,
    StudyError,
    TestbedError,
)
from iolab.frozen import frozen, replace
from iolab.run import outputs
from iolab.run.ahead import AheadCampaign, AheadRunner
from iolab.run.campaign import Campaign, Outcome, Start
from iolab.run.hosts import check_same_host
from iolab.run.observer import Observer
from iolab.run.prepare import Analysis, Prepared, confirmed, greet, note_tiny_budget
from iolab.run.record import caveats_of
from iolab.run.rehearsal import probe_stacks, rehearse_stacks
from iolab.run.same_machine import check_same_machine
from iolab.run.shard import Shard, shard_plan, stored_shard
from iolab.run.slices import SlicedCampaign
from iolab.run.stop import StopSwitch
from iolab.store.created_files import note_study
from iolab.store.db import HOST_KEY, SHARD_KEY, Origin, Store
from iolab.store.rows import Caveat
from iolab.study.checks import FEW_ROUNDS
from iolab.study.model import Study
from iolab.study.slice_lengths import announcement, unit_noun
from iolab.study.validity import PAIRS
from iolab.testbed.agent import LostAgentError, OpenTestbed
from iolab.testbed.model import DirectoryTestbed, Testbed
from iolab.testbed.runner import Runner, StartRunner
from iolab.version import iolab_version
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.run.wear import WriteBudget

MISMATCHES_SHOWN: Final = 10
"""Blocks that came back wrong are listed up to this number; the store has more of them."""
FAILS_AGAIN: Final = (
    "a simulation fails in the same way again: change the stack or the workload, and measure it "
    "as a new study (--out NEW)"
)
"""Way on from trials of a simulation that failed."""


@frozen
class Conducted:
    """A run that is over; what it stored lies in `database`."""

    database: Path
    outcome: Outcome | None
    """End of the campaign; None if it could not go on."""
    problem: IolabError | None
    """Problem although records were stored; to be raised after they were shown."""
    shard: Shard | None = None
    """Part of the study that was run; None is all of it."""


def conduct(prepared: Prepared, stop: StopSwitch) -> Conducted:
    """Run or continue what was prepared; `stop` ends it early.

    Raises
    ------
    IolabError : it was refused, or nothing could be stored.
    """
    note_plan(prepared)
    start_runner = prepared.choose_runner()
    prepared = confirmed(prepared, start_runner)
    outcome, problem = measure(prepared, start_runner, stop)
    with Store.open_reader(prepared.database, is_checked=False) as store:
        shard = stored_shard(store, None) if prepared.testbed.is_simulated else None
    if outcome is not None:
        _tell_outcome(outcome, prepared.observer, shard)
    return Conducted(prepared.database, outcome, problem, shard)


def note_plan(prepared: Prepared) -> None:
    """Tell what was noticed about the plan."""
    if not prepared.options.is_announced:
        return
    if prepared.options.note:
        prepared.observer.remark(f"iolab: note: {prepared.options.note}")
    for note in prepared.plan.notes:
        # A rehearsal ends with the rounds that will probably decide: one number is enough.
        if not (prepared.options.is_dry_run and note.code == FEW_ROUNDS):
            prepared.observer.remark(f"iolab: note: {note.message}: {note.hint}")
    note_tiny_budget(prepared)


# Measuring.


def measure(
    prepared: Prepared, start_runner: StartRunner, stop: StopSwitch
) -> tuple[Outcome | None, IolabError | None]:
    """Run the campaign; an error after the first record does not hide what was stored.

    Returns
    -------
    How it ended, None if it could not go on, and what is wrong with that.

    Raises
    ------
    IolabError : nothing was stored.
    """
    outcome: Outcome | None = None
    with ExitStack() as stack:
        made = outputs.missing_directories(prepared.out_dir)
        # Before anything of the machine is touched, so that nothing is measured for nobody.
        open_store = _resumed_store if prepared.is_resumed else _new_store
        store = open_store(prepared, stack)
        n_known = len(store.finished_trials())
        shard = stored_shard(store, prepared.options.shard)
        prepared = replace(prepared, options=replace(prepared.options, shard=shard))
        try:
            writes = _counted(prepared, stop, stack)
            prepared = replace(prepared, writes=writes)
            with start_runner(writes or stop, prepared.observer.note) as runner:
                store.note_measuring(runner.process)
                rehearse_stacks(
                    runner, prepared.run_id, prepared.testbed, prepared.plan, prepared.core
                )
                greet(runner, prepared, is_dry_run=False)
                if prepared.options.is_announced:
                    prepared.observer.remark(announcement_text(prepared))
                opened = _opened(prepared, runner, stop)
                try:
                    check_schedulers(prepared.plan.study, opened)
                    if prepared.is_resumed and not prepared.options.is_other_machine_allowed:
                        check_same_machine(store, opened.facts)
                    if not prepared.is_resumed:
                        probe_stacks(runner, prepared.testbed, prepared.plan, prepared.core)
                    outcome = _run_campaign(prepared, store, runner, opened, stop)
                    prepared.attendant.ended(store)
                finally:
                    _close_testbed(runner, outcome)
        except IolabError as caught:
            is_nothing_new = len(store.finished_trials()) == n_known
            is_begun_anew = is_nothing_new and not n_known
            error = _with_next_step(caught, prepared.way_on, is_begun_anew=is_begun_anew)
            if is_nothing_new:
                stack.close()
                # A full disk is told to be resumed from.
                if not prepared.is_resumed and not isinstance(error, StoreError):
                    outputs.discard(prepared.database, made)
                raise error from caught
            return outcome, error
        return outcome, _error_of(outcome, prepared) or _not_measured(prepared, store)


def _not_measured(prepared: Prepared, store: Store) -> IolabError | None:
    """Error for cells without a number, unless the observer has been told of each failure."""
    if prepared.options.failures_max is None or prepared.options.shard is not None:
        return None
    from iolab.run.not_measured import not_measured

    return not_measured(store, prepared.plan.study, prepared.way_on)


def _counted(prepared: Prepared, stop: StopSwitch, stack: ExitStack) -> WriteBudget | None:
    """Counter of the writes to a whole device; None where nothing was agreed upon."""
    if prepared.accepted is None:
        return None
    from iolab.run.writes import begin_counting

    return begin_counting(prepared.accepted, prepared.plan, prepared.testbed, stop, stack)


def _opened(prepared: Prepared, runner: Runner, stop: StopSwitch) -> OpenTestbed:
    """The testbed, made; what is written to it counts where that is agreed upon."""
    if prepared.writes is None:
        return runner.open_testbed(prepared.testbed.agent_spec())
    from iolab.run.writes import open_counted

    return open_counted(runner, prepared.testbed, prepared.writes, stop)


def _with_next_step(error: IolabError, way_on: str, *, is_begun_anew: bool) -> IolabError:
    """The same error; of a lost agent with what works: --resume needs something to continue."""
    if not isinstance(error, LostAgentError):
        return error
    return error.with_next_step(
        "type the same command again" if is_begun_anew else f"continue with {way_on}"
    )


def _close_testbed(runner: Runner, outcome: Outcome | None) -> None:
    """Close in order if the runner is well; otherwise its end does it."""
    if outcome is not None:
        runner.close_testbed()


def _run_campaign(
    prepared: Prepared,
    store: Store,
    runner: Runner,
    opened: OpenTestbed,
    stop: StopSwitch,
) -> Outcome:
    observer, caveats = prepared.observer, caveats_of(opened.warnings)
    if prepared.options.is_announced and not prepared.testbed.is_simulated:
        note_caveats(observer, caveats)  # Of a model nothing can be changed: the answer has it.
    plan, shard, description = prepared.plan, prepared.options.shard, opened.description
    if shard is not None:
        plan, caveats = shard_plan(plan, shard), (*caveats, shard.caveat)
        description = {**description, SHARD_KEY: shard.text}
    if prepared.options.host is not None:
        description = {**description, HOST_KEY: prepared.options.host.description()}
    session_id = store.begin_session(
        prepared.run_id, iolab_version=iolab_version(), testbed=description, caveats=caveats
    )
    prepared.attendant.begin(store, runner, stop)
    start = Start(
        session_id=session_id,
        stop=stop,
        report=observer.progress,
        spent_ns=time.monotonic_ns() - prepared.started_ns,
        is_decided=lambda: _is_decided(store, prepared.analysis),
        rounds_for_width=lambda: _rounds_for_width(store, prepared),
        writes=prepared.writes,
        attendant=prepared.attendant,
        failures_max=prepared.options.failures_max,
    )
    if isinstance(runner, AheadRunner):
        campaign: Campaign = AheadCampaign(plan, store, runner, prepared.core, start)
    else:
        kind = SlicedCampaign if plan.design == PAIRS else Campaign
        campaign = kind(plan, store, runner, prepared.core, start)
    try:
        return campaign.run()
    finally:
        observer.clear_line()


def _is_decided(store: Store, analysis: Analysis) -> bool:
    """Tell whether every headline comparison has a word, at the level of this look."""
    headline = getattr(analysis.judge(store.load_data()), "headline", [])
    return bool(headline) and all(c.effect.word not in ("undecided", "depends") for c in headline)


def _rounds_for_width(store: Store, prepared: Prepared) -> int | None:
    """Rounds that the pilot of a study with a wanted width asks for."""
    width, analysis = prepared.plan.study.width, prepared.analysis
    headline = getattr(analysis.judge(store.load_data()), "headline", [])
    return None if width is None else analysis.rounds_for_width(headline, width)


def _resumed_store(prepared: Prepared, stack: ExitStack) -> Store:
    store = stack.enter_context(Store.open_writer(prepared.database))
    outputs.check_same_plan(store, prepared.plan)
    check_same_host(store, prepared.options.host)
    return store


def _new_store(prepared: Prepared, stack: ExitStack) -> Store:
    caveats = _store_caveats(prepared)
    if prepared.options.is_announced:
        note_caveats(prepared.observer, caveats)
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
    if prepared.attendant.written_files():
        note_study(prepared.database)
    return stack.enter_context(store)


def note_caveats(observer: Observer, caveats: Sequence[Caveat]) -> None:
    """Tell what is to be known of a testbed or a store."""
    for caveat in caveats:
        observer.remark(
            f"iolab: note: {caveat.message}" + (f": {caveat.hint}" if caveat.hint else "")
        )


def _store_caveats(prepared: Prepared) -> list[Caveat]:
    """Caveats of all results."""
    return [*_caveats_of_order(prepared), *_caveats_of_place(prepared)]


def _caveats_of_order(prepared: Prepared) -> list[Caveat]:
    """Warn if levels are never measured in random order.

    Simulated trials do not know each other, so that their order does not matter.
    """
    study = prepared.plan.study
    is_simulated = prepared.testbed.is_simulated
    if not study.command or not study.is_comparison or is_simulated:
        return []
    return [
        Caveat(
            "fixed_order",
            "rows were measured in the order of the table, not at random: what changes with time"
            " inside a round looks like a difference of sizes.",
            "To choose a size, let iolab compare sizes: it measures them in random order.",
        )
    ]


def _caveats_of_place(prepared: Prepared) -> list[Caveat]:
    """Warn if the results lie on the file system that is measured."""
    testbed = prepared.testbed
    is_here = prepared.options.host is None
    if not isinstance(testbed, DirectoryTestbed) or prepared.plan.study.command or not is_here:
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


def check_schedulers(study: Study, opened: OpenTestbed) -> None:
    """Refuse a scheduler that the running kernel does not offer for these devices."""
    for level in study.levels_in_use("scheduler"):
        if level not in opened.schedulers:
            devices = ", ".join(opened.knob_devices) or "no device"
            offered = ", ".join(opened.schedulers) or "none to switch"
            raise StudyError(
                f"scheduler '{level}' is not offered for {devices}; this kernel offers {offered}",
                "leave it out, or load its module",
            )


def announcement_text(prepared: Prepared) -> str:
    """Sentence about what is measured, how often, and where the results go."""
    plan = prepared.plan
    study = plan.study
    noun = unit_noun(study) if plan.design == PAIRS else "round"
    rounds = counted(study.rounds, noun) if study.rounds else f"as many {noun}s as fit"
    if study.width is not None:
        rounds = f"{f'at most {rounds}' if study.rounds else 'rounds'} for intervals of"
        rounds += f" ±{study.width * 100:.3g} %"
    budget = (
        f", at most {units.format_duration_rounded(study.budget_ns)}" if study.budget_ns else ""
    )
    how = announcement(plan) if plan.design == PAIRS else prepared.round_text
    return (
        f"iolab: {study.name} on {prepared.testbed.text}: "
        f"{counted(len(plan.treatments), 'treatment')}, {rounds}{budget}; {how}; "
        f"results in {prepared.out_dir}"
    )


def mismatch_error(outcome: Outcome, testbed: Testbed) -> MismatchError:
    """Error about data that came back and are not those that were written; whose fault it is."""
    trials = {text.partition(":")[0] for text in outcome.mismatches}
    who, advice = "storage", "do not trust this device or its file system before you know why"
    if testbed.is_simulated:
        who, advice = "the simulation", "the simulator has lost them: report this, with the study"
        from iolab.testbed.sim import SimTestbed

        if isinstance(testbed, SimTestbed) and testbed.has_faults:
            advice = "[[faults]] of the stack file have lost them"
    return MismatchError(
        f"{who} gave back other data than was written, in {len(trials)} of "
        f"{counted(outcome.n_ok + outcome.n_failed, 'trial')}; first: {outcome.mismatches[0]}",
        f"the other trials are kept; {advice}",
    )


def _error_of(outcome: Outcome | None, prepared: Prepared) -> IolabError | None:
    if outcome is None:
        return None
    if outcome.mismatches:
        return mismatch_error(outcome, prepared.testbed)
    if outcome.ending == "interrupted":
        kept = f"finished trials are kept; continue with {prepared.way_on}"
        return StoppedError(outcome.message, kept)
    if outcome.ending == "writes":
        return RefusedError(f"stopped by the accepted amount: {outcome.message}", outcome.hint)
    if outcome.ending == "failing":
        way = f"correct the cause, then continue with {prepared.way_on}"
        return TestbedError(outcome.message, FAILS_AGAIN if prepared.testbed.is_simulated else way)
    if outcome.ending == "budget" and outcome.rounds_complete == 0:
        return StudyError(outcome.message)
    # A fleet is judged all the same: one host may have less time left than another.
    if outcome.ending == "budget" and outcome.is_idle and prepared.options.host is None:
        return StudyError(f"no trial was run: {outcome.message}", outcome.hint)
    return None


def _tell_outcome(outcome: Outcome, observer: Observer, shard: Shard | None) -> None:
    failed = f", {outcome.n_failed} failed" if outcome.n_failed else ""
    why = f"; {outcome.message}" if outcome.ending in ("budget", "decided") else ""
    for mismatch in outcome.mismatches[:MISMATCHES_SHOWN]:
        observer.note(f"iolab: wrong data: {mismatch}")
    rounds = counted(outcome.rounds_complete, "complete round")
    where = rounds if shard is None else f"shard {shard.number} of {shard.count}"
    observer.remark(f"iolab: {counted(outcome.n_ok, 'trial')} finished{failed}, {where}{why}")
