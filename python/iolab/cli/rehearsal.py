"""What the agent would refuse, found on paper before an image is written.

The agent knows which file systems, options and memory limits it can serve. In a dry run it looks at
them by the same code, changes nothing and takes milliseconds. Knobs are looked at where the device
is known beforehand (``has_knobs_on_paper``), which a loop device is not.
"""

from __future__ import annotations

import json
from typing import Any

from iolab.run.core import Core
from iolab.run.trial import trial_spec
from iolab.study.plan import Plan
from iolab.testbed.model import Testbed
from iolab.testbed.runner import Runner


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


def _distinct_specs(plan: Plan, core: Core, *, has_knobs: bool) -> list[dict[str, Any]]:
    """One trial for each stack, memory limit and perhaps set of knobs; none for a directory."""
    found: dict[str, dict[str, Any]] = {}
    for trial in plan.round_trials(1):
        spec = trial_spec(trial, core, is_fresh_fs=True)
        if not has_knobs:
            spec["knobs"] = {}
        looked_at = [spec["stack"], spec["memory_limit_bytes"], spec["knobs"] or None]
        if any(part is not None for part in looked_at):
            found.setdefault(json.dumps(looked_at), spec)
    return list(found.values())
