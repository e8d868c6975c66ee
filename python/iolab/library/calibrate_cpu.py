"""Costs of software on this machine: calls, copies, timers, switches, and each scheduler.

The parts that every process may measure are measured in this process, as medians over many short
runs less the interpreter's own time. Schedulers need root: they are compared on a private loop
device by a study of reads with one operation at a time, so that the difference from ``none`` is
what a scheduler adds to an operation. Schedulers that this kernel lacks are derived from counted
operations (``iolab sim software``).
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.run_study import run
from iolab.library.services import Services
from iolab.library.simulator import software
from iolab.library.study import Study

RUNS: Final = 400
CALLS: Final = 50
"""Calls in a run; the median is over runs."""
COPIED: Final = 1 << 24
PAGE: Final = 4096
NEAR_S: Final = 0.0008
FAR_S: Final = 100.0
"""A timer that is the next one of the processor programs its clock; this one does not."""
HOOKS: Final = ("insert", "dispatch", "complete")
REAL: Final = ("none", "mq-deadline", "kyber", "bfq")
MEDIAN: Final = "latency_ns_p50"
DERIVED_FROM: Final = "mq-deadline"


@frozen
class SchedulerCost:
    """Costs of a scheduler's calls, in ns."""

    name: str
    tag: str
    """``meas``, or ``derived`` from a measured one."""
    hooks_ns: dict[str, int]
    """By call: insert, dispatch, complete, merge."""


@frozen
class CpuCosts:
    """Costs of software on this machine."""

    call_ns: float
    """A system call that does nothing."""
    page_ns: float
    """A page read from the page cache, without the call."""
    copy_bytes_per_s: float
    timer_ns: float
    """A timer is set that the clock has to be programmed for."""
    switch_ns: float
    """Another task of the same processor is woken and runs."""
    added_ns: dict[str, float]
    """Time per operation that a scheduler adds to ``none``; below 0 where noise is larger than it.

    Empty if it was not measured.
    """
    why_not: str
    """Reason why schedulers were not measured; empty if they were."""
    schedulers: tuple[SchedulerCost, ...]


def calibrate_cpu(services: Services) -> CpuCosts:
    """Measure this machine; half a minute as root, a second otherwise."""
    call_ns = _per_call(os.getppid)
    switch_ns = _switch()
    added, why_not = _added()
    return CpuCosts(
        call_ns=call_ns,
        page_ns=max(0.0, _page() - call_ns),
        copy_bytes_per_s=_copy(),
        timer_ns=_timer(),
        switch_ns=switch_ns,
        added_ns=added,
        why_not=why_not,
        schedulers=_schedulers(added, switch_ns, services),
    )


def _nothing() -> None:
    """Cost of a call of the interpreter."""


def _median_ns(call: Callable[[], object]) -> float:
    """Return the median time of a call, the interpreter's part included."""
    times = list[float]()
    for _ in range(RUNS):
        begun = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter_ns() - begun) / CALLS)
    return statistics.median(times)


def _per_call(call: Callable[[], object]) -> float:
    return max(1.0, _median_ns(call) - _median_ns(_nothing))


def _page() -> float:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(PAGE))
        file.flush()
        buffer = [bytearray(PAGE)]
        return _per_call(lambda: os.preadv(file.fileno(), buffer, 0))


def _copy() -> float:
    source, target = memoryview(bytes(COPIED)), memoryview(bytearray(COPIED))
    times = list[int]()
    for _ in range(9):
        begun = time.perf_counter_ns()
        target[:] = source
        times.append(time.perf_counter_ns() - begun)
    return COPIED / (statistics.median(times) / 1e9)


def _timer() -> float:
    """Half of a near timer set and taken back, less the same of a far one."""
    before = signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:

        def pair(seconds: float) -> float:
            def call() -> None:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                signal.setitimer(signal.ITIMER_REAL, 0)

            return _median_ns(call)

        return max(0.0, (pair(NEAR_S) - pair(FAR_S)) / 2)
    finally:
        signal.signal(signal.SIGALRM, before)


def _switch() -> float:
    """Half of a round trip to a process on the same processor, less its own calls."""
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        child = os.fork()
        if child == 0:  # The child only echoes, until the pipe is closed.
            os.close(from_parent)
            while byte := os.read(to_child, 1):
                os.write(from_child, byte)
            os._exit(0)

        def there_and_back() -> None:
            os.write(from_parent, b"x")
            os.read(to_parent, 1)

        def alone() -> None:
            os.write(from_child, b"x")
            os.read(to_parent, 1)

        round_trip, calls = _median_ns(there_and_back), _median_ns(alone)
        os.close(from_parent)
        os.waitpid(child, 0)
        # Either side writes and reads once.
        return max(1.0, (round_trip - 2 * calls) / 2)
    finally:
        os.sched_setaffinity(0, processors)
        for end in (to_child, to_parent, from_child):
            os.close(end)


def _added() -> tuple[dict[str, float], str]:
    """Return the time that each scheduler adds to an operation, or why it is not known."""
    if os.geteuid() != 0:
        return {}, "schedulers are measured on a private loop device, which needs root"
    study = Study(
        testbed="loop:256m",
        workload={
            "name": "reads",
            "kind": "iozone",
            "tests": ["random-read"],
            "direct": True,
        },
        factors={"scheduler": list(REAL)},
        settings={"record_size": "4k", "file_size": "32m", "direct": "true"},
        rounds=3,
        name="calibrate-cpu",
    )
    try:
        with tempfile.TemporaryDirectory(prefix="iolab-calibrate-") as folder:
            result = run(study, out=Path(folder) / "results")
            rows = result.verdict.treatments
    except IolabError as error:
        return {}, f"the schedulers of this kernel could not be compared: {error}"
    medians: dict[str, list[float]] = {}
    for row in rows:
        if row.metric == MEDIAN and row.level is not None and "read" in row.operation:
            medians.setdefault(row.level, []).append(row.value)
    if REAL[0] not in medians:
        return {}, "the study of the schedulers has no median"
    base = statistics.mean(medians[REAL[0]])
    found = {name: statistics.mean(values) - base for name, values in medians.items()}
    return {name: ns for name, ns in found.items() if name != REAL[0]}, ""


def _schedulers(
    added: dict[str, float], switch_ns: float, services: Services
) -> tuple[SchedulerCost, ...]:
    """Split what was measured by counted operations, and price the others by the same."""
    counted = _counted(services)
    # blk-mq leaves the dispatch after a single submission to a worker of the kernel.
    hooks = {name: max(0.0, ns - switch_ns) for name, ns in added.items()}
    of_reference = sum(counted[DERIVED_FROM][hook] for hook in HOOKS)
    price = hooks.get(DERIVED_FROM, of_reference) / of_reference
    rows = list[SchedulerCost]()
    for name, costs in counted.items():
        own = sum(costs[hook] for hook in HOOKS)
        is_measured = name in hooks and own > 0 and hooks[name] > 0
        scale = hooks[name] / own if is_measured else price
        if scale <= 0:
            scale = 1.0
        rows.append(
            SchedulerCost(
                name,
                "meas" if is_measured else "derived",
                {hook: round(ns * scale) for hook, ns in costs.items()},
            )
        )
    return tuple(rows)


def _counted(services: Services) -> dict[str, dict[str, float]]:
    """Costs of each scheduler's calls in the table ``native``."""
    found: dict[str, dict[str, float]] = {}
    for name, row in software("native", services)["parameters"].items():
        scheduler, _, hook = name.partition(".")
        if hook and isinstance(row["value"], int | float):
            found.setdefault(scheduler, {})[hook] = float(row["value"])
    return found
