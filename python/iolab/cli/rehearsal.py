"""What the agent would refuse, found on paper before an image is written.

The agent knows which file systems, options and memory limits it can serve. In a dry run it looks at
them by the same code, changes nothing and takes milliseconds. Left out: knobs, whose device may not
exist yet.
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
    """Let `runner` look at every stack and memory limit of `plan` once.

    Raises
    ------
    TestbedError : it cannot make one; RefusedError if it declines to.
    """
    specs = _distinct_specs(plan, core)
    if not specs:
        return
    runner.hello(run_id, is_dry_run=True)
    runner.open_testbed(testbed.agent_spec())
    for spec in specs:
        runner.run_trial(spec)
    runner.close_testbed()


def _distinct_specs(plan: Plan, core: Core) -> list[dict[str, Any]]:
    """One trial for each stack and memory limit; none for a plain directory."""
    found: dict[str, dict[str, Any]] = {}
    for trial in plan.round_trials(1):
        spec = {**trial_spec(trial, core, is_fresh_fs=True), "knobs": {}}
        if spec["stack"] is not None or spec["memory_limit_bytes"] is not None:
            found.setdefault(json.dumps([spec["stack"], spec["memory_limit_bytes"]]), spec)
    return list(found.values())
