"""Refusals of the agent, found on paper before an image is written.

The agent knows which file systems, options and memory limits it can serve. In a dry run it looks at
them by the same code, changes nothing and takes milliseconds. Knobs are looked at where the device
is known beforehand (``has_knobs_on_paper``), which a loop device is not. What only the kernel can
refuse is tried on the testbed itself, before the first round (:func:`probe_stacks`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from iolab.errors import StudyError
from iolab.run.core import Core
from iolab.run.trial import probe_spec, trial_spec
from iolab.study.plan import Plan
from iolab.testbed.agent import AgentError
from iolab.testbed.model import Testbed
from iolab.testbed.runner import Runner

if TYPE_CHECKING:
    from iolab.protocol import Stack, TrialSpec


def rehearse_stacks(runner: Runner, run_id: str, testbed: Testbed, plan: Plan, core: Core) -> None:
    """Let `runner` look at every stack, memory limit and perhaps knob of `plan` once.

    Raises
    ------
    TestbedError : it cannot make one; RefusedError if it declines to.
    """
    specs = _distinct_specs(plan, core, has_knobs=testbed.has_knobs_on_paper)
    if not specs:
        return
    runner.hello(run_id, is_dry_run=True)
    runner.open_testbed(testbed.agent_spec())
    for spec in specs:
        runner.run_trial(spec)
    runner.close_testbed()


def probe_stacks(runner: Runner, testbed: Testbed, plan: Plan, core: Core) -> None:
    """Make and mount every file system with options of its own, and set every level of a knob,
    once before the first round.

    Only the kernel knows which options go together (ext4 refuses ``data=journal,delalloc`` of two
    that it knows), and which numbers a device takes. Found out by the trials themselves, every
    round would lose the same treatment, or the study would end in the middle of one.

    Raises
    ------
    StudyError : the kernel, or the program that makes file systems, refuses one.
    TestbedError : a knob does not take a level.
    """
    tried = set[str]()
    for trial in plan.round_trials(1):
        spec = probe_spec(trial, core)
        if testbed.has_knobs_on_paper:  # They were looked at.
            spec["knobs"] = {}
        untried = _to_be_probed(spec) - tried
        if not untried:
            continue
        tried |= untried
        try:
            record = runner.run_trial(spec)
            is_failed, problem, hint = record["status"] == "failed", record.get("error"), ""
        except AgentError as error:
            is_failed, problem, hint = True, error.message, error.hint
        if is_failed:
            raise _refused(spec, str(problem or "no reason given"), hint)


def _to_be_probed(spec: TrialSpec) -> set[str]:
    """File system with options, and knobs with levels; schedulers are known by their names."""
    stack = spec["stack"]
    is_special = stack is not None and (stack["mkfs_options"] or stack["mount_options"])
    levels = {
        f"{name}={level}"
        for name, level in (spec.get("knobs") or {}).items()
        if name != "scheduler"
    }
    return levels | ({json.dumps(stack)} if is_special else set())


def _refused(spec: TrialSpec, message: str, hint: str) -> StudyError:
    stack = spec["stack"]
    if stack is not None and (stack["mkfs_options"] or stack["mount_options"]):
        return _refused_stack(stack, message, hint)
    levels = ", ".join(sorted(_to_be_probed(spec)))
    return StudyError(
        f"{levels} cannot be set, so no trial was run: {message}",
        hint or "correct the level, or leave it out",
    )


def _refused_stack(stack: Stack, message: str, hint: str) -> StudyError:
    options = [
        f"{name.replace('_', ' ')} {' '.join(stack[name])}"
        for name in ("mkfs_options", "mount_options")
        if stack[name]
    ]
    return StudyError(
        f"{stack['fs']} with {' and '.join(options)} cannot be used, so no trial was run: "
        f"{message}",
        hint or "correct the options, or leave that level out",
    )


def _distinct_specs(plan: Plan, core: Core, *, has_knobs: bool) -> list[TrialSpec]:
    """One trial for each stack, memory limit and perhaps set of knobs; none for a directory."""
    found: dict[str, TrialSpec] = {}
    for trial in plan.round_trials(1):
        spec = trial_spec(trial, core, is_fresh_fs=True)
        if not has_knobs:
            spec["knobs"] = {}
        looked_at = [spec["stack"], spec["memory_limit_bytes"], spec["knobs"] or None]
        if any(part is not None for part in looked_at):
            found.setdefault(json.dumps(looked_at), spec)
    return list(found.values())
