"""Budget of a study's writes to a whole device: foretold, agreed upon, counted (rule R11)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from iolab.errors import RefusedError, StoppedError
from iolab.run.confirm import Device, Wear
from iolab.run.stop import StopSwitch
from iolab.run.wear import Accepted, History, WriteBudget, forecast_writes, written_counter
from iolab.store.db import Store
from iolab.study.plan import Plan
from iolab.testbed.agent import OpenTestbed
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.model import Testbed
from iolab.testbed.runner import Runner


def stored_history(plan: Plan, database: Path) -> History:
    """Writes of earlier starts of the study in `database`."""
    with Store.open_reader(database) as store:
        return History.of(plan, store.contents.attempts())


def wear_of(plan: Plan, testbed: DeviceTestbed, device: Device, history: History) -> Wear:
    """Wear of the device by the study."""
    before = testbed.precondition_bytes(device.size_bytes)
    return Wear.of(forecast_writes(plan, device.size_bytes, before, history), device)


def begin_counting(
    accepted: Accepted | None, plan: Plan, testbed: Testbed, stop: StopSwitch, stack: ExitStack
) -> WriteBudget | None:
    """A budget that looks until `stack` ends; None where nothing was agreed upon."""
    if accepted is None or not isinstance(testbed, DeviceTestbed):
        return None
    return stack.enter_context(WriteBudget(accepted, plan, written_counter(testbed.path), stop))


def open_counted(
    runner: Runner, testbed: Testbed, writes: WriteBudget | None, stop: StopSwitch
) -> OpenTestbed:
    """Open the testbed.

    Raises
    ------
    RefusedError : preconditioning would write more than was accepted, or did.
    """
    if writes is None:
        return runner.open_testbed(testbed.agent_spec())
    if reason := writes.why_not_prepared():
        raise RefusedError(reason, writes.hint_to_begin_anew())
    try:
        opened = runner.open_testbed(testbed.agent_spec())
    except StoppedError:
        if stop.presses or not writes.is_spent:
            raise
        raise RefusedError(writes.why_stopped(), writes.hint_to_begin_anew()) from None
    if reason := writes.why_not_begun():  # A fast device writes all of it between two looks.
        raise RefusedError(reason, writes.hint_to_begin_anew())
    return opened
