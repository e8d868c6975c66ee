"""A rehearsal: every action of the first round is told, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from iolab.run.conduct import check_schedulers, note_caveats
from iolab.run.confirm import Device, check_key
from iolab.run.observer import Observer
from iolab.run.places import placement_lines
from iolab.run.prepare import Prepared, greet, history
from iolab.run.record import caveats_of
from iolab.run.trial import trial_spec
from iolab.run.writes import wear_of
from iolab.study.estimate import space_text
from iolab.study.slice_lengths import announcement, unit_noun
from iolab.study.validity import PAIRS
from iolab.testbed.agent import OpenTestbed
from iolab.testbed.device import DeviceTestbed
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import Action


def rehearse(prepared: Prepared) -> None:
    """Tell every action of the first round; nothing is changed.

    Raises
    ------
    IolabError : what would be refused by the run itself.
    """
    observer, plan = prepared.observer, prepared.plan
    study = plan.study
    with prepared.choose_runner()(None, None) as runner:
        greet(runner, prepared, is_dry_run=True)
        opened = runner.open_testbed(prepared.testbed.agent_spec())
        check_schedulers(study, opened)
        _tell_device(prepared, opened)
        observer.result(f"Nothing is changed. Study '{study.name}' would do this:")
        _tell_actions("prepare the testbed", opened.actions, observer)
        for line in placement_lines(prepared.testbed, plan):
            observer.result(f"  {line}")
        plot = None
        for trial in plan.round_trials(1):
            is_fresh = trial.is_plot_start or trial.treatment.whole_plot != plot
            record = runner.run_trial(trial_spec(trial, prepared.core, is_fresh_fs=is_fresh))
            plot = trial.treatment.whole_plot
            _tell_actions(
                f"trial {trial.trial_id}: {trial.treatment.name}",
                record.get("actions", []),
                observer,
            )
        _tell_actions("restore", runner.close_testbed().get("actions", []), observer)
    is_sliced = plan.design == PAIRS
    noun = unit_noun(study) if is_sliced else "round"
    rounds = (
        counted(study.rounds, noun) if study.rounds else f"as many {noun}s as the budget admits"
    )
    order = f", each {noun} in another order" if len(plan.treatments) > 1 else ""
    how = announcement(plan) if is_sliced else prepared.round_text
    observer.result(
        f"{rounds} of {counted(len(plan.treatments), 'treatment')}{order}; "
        f"{how}, {space_text(plan.round_cost())}."
    )


def _tell_device(prepared: Prepared, opened: OpenTestbed) -> None:
    """Tell which device it is, what would be asked and how much is written."""
    testbed, observer = prepared.testbed, prepared.observer
    if not isinstance(testbed, DeviceTestbed):
        return
    device = Device.of(opened.facts)
    check_key(testbed, device, is_from_file=prepared.options.is_testbed_from_file)
    wear = wear_of(prepared.plan, testbed, device, history(prepared))
    asked = "nothing: it repeats a study" if device.is_confirmed else f"type: {device.phrase}"
    observer.result(f"EVERYTHING on this device would be lost:\n{device.describe()}")
    observer.result(f"  asked   {asked}\n  wear    {wear.describe()}")
    note_caveats(observer, caveats_of(opened.warnings))


def _tell_actions(title: str, actions: Iterable[Action], observer: Observer) -> None:
    observer.result(f"{title}")
    for action in actions:
        observer.result(f"  {action_text(action)}")


def action_text(action: Action) -> str:
    """``[B] write_knob /sys/block/loop8/queue/scheduler: none -> bfq``."""
    detail = f": {action['detail']}" if action.get("detail") else ""
    return (
        f"[{action.get('class', '?')}] {action.get('kind', '?')} {action.get('target', '')}{detail}"
    )
