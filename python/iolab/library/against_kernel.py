"""Workloads on the running kernel, and the same ones in simulation, fact by fact.

Both sides are studies like any other, on a loop device and on a simulated stack of its size, with
block traces; the facts are read from these. Results are kept only if somebody names a directory.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, RefusedError, TestbedError
from iolab.frozen import frozen
from iolab.kernel_checks import compared
from iolab.kernel_checks.compared import Compared, compare
from iolab.kernel_checks.facts import BlockEvent, TrialFacts, facts_of
from iolab.kernel_checks.rows import CHECKS, READS, SYSTEMS, VARIANTS, Check
from iolab.library.run_study import run
from iolab.library.services import Services
from iolab.library.study import Study
from iolab.library.trace_tables import ColumnsCore
from iolab.store.db import STORE_NAME, Store
from iolab.store.owner import make_directories
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.protocol import Record
    from iolab.run.progress import Progress
    from iolab.store.rows import TrialRow

WORDS: Final = compared.WORDS
"""Outcomes of a comparison."""
RUNS: Final = 3
"""Runs of the kernel, if nobody says how many."""
LOOP_MIB: Final = 512
_READS: Final = "reads"
_FOR_EVER_NS: Final = 1 << 63
_MEMORY_MIB_MAX: Final = 8192
"""Of the simulated side: what all workloads need, and not more real memory than that takes."""
_MARKED_SINCE: Final = {"ext4": (6, 8), "xfs": (2, 6)}
"""Version of Linux since which writes of the journal are marked as metadata (fs/jbd2/commit.c)."""
_SEED: Final = 19
_KNOBS: Final = {"scheduler": "none", "read_ahead_kb": 128, "max_sectors_kb": 1280}
"""Settings that both sides have, so that a difference is the file system's."""
_STACK: Final = """\
name = "beside-the-kernel"
title = "A device as large as the loop device"

[queue]
cpus = {cpus}
max_segments = 128

[software]
processors = {cpus}

[files]
kernel = "{kernel}"
memory = "{memory_mib}m"

[device]
like = "fixed-100us"
name = "as-large-as-the-loop-device"
title = "A device as large as the loop device"
parameters = {{ capacity = {sectors}, depth = 1, latency = 20 }}
"""


@frozen
class Against:
    """Comparison of one workload on one file system.

    Parameters
    ----------
    system : its name, with the mount option under which it ran.
    check : the workload.
    outcomes : measure by measure.
    """

    system: str
    check: Check
    outcomes: tuple[Compared, ...]


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """Workloads by name, all without one.

    Raises
    ------
    IolabError : a name is none; lists those that are.
    """
    known = {check.name: check for check in CHECKS}
    for name in names:
        if name not in known:
            raise IolabError(
                f"there is no workload '{name}'{nearest(name, tuple(known))}",
                "`iolab sim against-kernel --list` names them",
            )
    return tuple(known[name] for name in dict.fromkeys(names)) or CHECKS


def systems(names: Sequence[str]) -> tuple[str, ...]:
    """File systems by name, all without one.

    Raises
    ------
    IolabError : a name is none that is compared.
    """
    for name in names:
        if name not in SYSTEMS:
            raise IolabError(
                f"{name} is not compared with the kernel", f"there are {', '.join(SYSTEMS)}"
            )
    return tuple(dict.fromkeys(names)) or SYSTEMS


def check_possible(names: Sequence[str], runs: int, out: Path | None) -> None:
    """Refuse what cannot be run here, before anything is made.

    Raises
    ------
    IolabError : not root, a tool is missing, too few runs, or `out` is not new.
    """
    if runs < 1:
        raise IolabError(
            f"--runs {runs}: the kernel must run each at least once", "write 1 or more"
        )
    if os.geteuid() != 0:
        raise IolabError(
            "the kernel's side needs root: it makes file systems on loop devices, and traces them",
            "run it as root; `iolab sim reproduce` and `iolab sim dispatch` need none",
        )
    for name in names:
        if shutil.which(f"mkfs.{name}") is None:
            package = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}[name]
            raise IolabError(f"mkfs.{name} is missing", f"install {package}, or leave {name} out")
    if out is not None and os.path.lexists(out):
        if not out.is_dir():
            raise RefusedError(f"{out} is no directory", "name a new one for --out")
        if any(out.iterdir()):
            raise RefusedError(f"{out} is not empty", "name a new directory for --out")


def kernel_release() -> str:
    """Release of the running kernel."""
    return platform.release()


def against_kernel(
    system: str,
    checks: Sequence[Check],
    runs: int,
    out: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Against]:
    """Run workloads on a loop device and in simulation, and compare what was done.

    Parameters
    ----------
    system : file system.
    runs : times that the kernel does each.
    out : directory for the results of both sides; None keeps nothing.
    progress : as :func:`iolab.run` takes it.

    Raises
    ------
    IolabError : a study could not run.
    """
    found = list[Against]()
    with _place(out) as (folder, stack):
        for kind, checked in studies_of(checks).items():
            variants = () if kind == _READS else VARIANTS.get(system, ())
            name = f"{system}-{kind}"
            kernel = _Side(folder / f"{name}-kernel", f"loop:{LOOP_MIB}m", system, variants)
            simulated = _Side(folder / f"{name}-simulated", stack, system, variants)
            mine = simulated.run(checked, 1, None)
            theirs = kernel.run(checked, runs, progress)
            for variant in variants or ("",):
                for check in checked:
                    key = (check.name, variant)
                    outcomes = tuple(
                        compare(measure, theirs[key], mine[key][0], check.known.get(measure))
                        for measure in check.measures
                    )
                    found.append(Against(f"{system} {variant}".strip(), check, outcomes))
    systems_told = list(dict.fromkeys(one.system for one in found))
    return sorted(found, key=lambda one: systems_told.index(one.system))


def studies_of(checks: Sequence[Check]) -> Mapping[str, Sequence[Check]]:
    """Workloads by the study that they belong to: those of one study have the same settings."""
    studies = dict[str, list[Check]]()
    for check in checks:
        kind = _READS if check.measures == READS else "writes"
        studies.setdefault(check.name if check.settings else kind, []).append(check)
    return studies


@contextmanager
def _place(out: Path | None) -> Generator[tuple[Path, str], None, None]:
    """Directory of the results, and the simulated testbed, whose file nobody else can exchange."""
    with tempfile.TemporaryDirectory(prefix="iolab-against-kernel-") as name:
        own = Path(name)
        (own / "stack.toml").write_text(_stack_text())
        if out is not None:
            make_directories(out)
        yield out or own, f"sim:{own / 'stack.toml'}"


def _stack_text() -> str:
    """Stack of the simulated side: the kernel's version, the machine's processors and memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _STACK.format(
        cpus=len(os.sched_getaffinity(0)),
        sectors=LOOP_MIB * 2048,
        kernel=".".join(map(str, _kernel())),
        memory_mib=min(memory >> 20, _MEMORY_MIB_MAX),
    )


def _kernel() -> tuple[int, int]:
    """Version of the running kernel."""
    found = re.match(r"(\d+)\.(\d+)", kernel_release())
    if found is None:
        raise TestbedError(
            f"the kernel calls itself {kernel_release()}, which is no version",
            "the model has rules for versions of Linux alone",
        )
    return int(found[1]), int(found[2])


class _Side:
    """The kernel, or the simulator: a study of all workloads, and the facts of its trials."""

    def __init__(self, out: Path, testbed: str, system: str, variants: Sequence[str]) -> None:
        self._out, self._testbed = out, testbed
        self._system, self._variants = system, variants

    def run(
        self,
        checks: Sequence[Check],
        rounds: int,
        progress: Callable[[Progress], None] | None,
    ) -> Mapping[tuple[str, str], list[TrialFacts]]:
        """Facts of each run, by workload and mount option."""
        factors = {"mount_options": list(self._variants)} if self._variants else None
        study = Study(
            name=self._out.name,
            testbed=self._testbed,
            workload=[_table(check) for check in checks],
            settings={"fs": self._system, **_KNOBS, **checks[0].settings},
            rounds=rounds,
            seed=_SEED,
            factors=factors,
            compare="mount_options" if factors else None,
            trace=True,
        )
        return self._facts(run(study, out=self._out, progress=progress).trials)

    def _facts(self, trials: Sequence[TrialRow]) -> Mapping[tuple[str, str], list[TrialFacts]]:
        found = dict[tuple[str, str], list[TrialFacts]]()
        core = cast("ColumnsCore", Services().load_core())
        with Store.open_reader(self._out / STORE_NAME) as store:
            for trial in trials:
                if trial.status != "ok":
                    raise TestbedError(
                        f"{self._testbed}: {trial.workload} failed: {trial.error or 'stopped'}",
                        "see what is in the way, or name the workloads that are to run",
                    )
                key = (trial.workload, trial.levels.get("mount_options", ""))
                record = store.record(trial.trial_id)
                has_marks = record.get("simulation") is not None or (
                    _kernel() >= _MARKED_SINCE[self._system]
                )
                facts = _facts_of_trial(record, self._out, core, has_marks=has_marks)
                found.setdefault(key, []).append(facts)
        return found


def _facts_of_trial(
    record: Record, folder: Path, core: ColumnsCore, *, has_marks: bool
) -> TrialFacts:
    """Facts of a trial, from its first phase to its last one, from its trace."""
    first, phase = record["phases"][0], record["phases"][-1]
    trace = record.get("trace")
    if trace is None or trace.get("problem") or any((trace.get("lost") or {}).values()):
        problem = (trace and trace.get("problem")) or "events were lost"
        raise TestbedError(
            f"the trace of {record['trial']} is not whole: {problem}",
            "run it again on a machine that does less, or name fewer workloads",
        )
    parent = phase.get("parent_ns")
    # A simulated phase is followed by nothing but the removal of its files, which waits for nobody.
    end = _FOR_EVER_NS if parent is None else int(phase["started_ns"]) + int(parent)
    span = (int(first["started_ns"]), end)
    placed = phase.get("placed")
    extents = placed["extents"] / placed["files"] if placed else None
    events = _events(folder / str(trace.get("file")), core)
    return facts_of(events, span, extents, has_marks=has_marks)


def _events(path: Path, core: ColumnsCore) -> list[BlockEvent]:
    """Events of block requests in a trace."""
    import numpy as np

    found = list[BlockEvent]()
    kinds: list[dict[str, str]] = json.loads(core.trace_column_kinds())

    def take(rows: int, batch: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        columns = {kind["name"]: buffers for kind, buffers in zip(kinds, batch, strict=True)}
        widths = {kind["name"]: kind["kind"] for kind in kinds}

        def numbers(name: str) -> list[int]:
            return np.frombuffer(columns[name][2], dtype=widths[name], count=rows).tolist()

        def texts(name: str) -> list[str]:
            _, offsets, values = columns[name]
            ends = np.frombuffer(offsets, dtype="int32", count=rows + 1).tolist()
            return [values[begin:end].decode() for begin, end in pairwise(ends)]

        found.extend(
            map(
                BlockEvent,
                numbers("ts_ns"),
                texts("event"),
                numbers("sector"),
                numbers("bytes"),
                texts("rwbs"),
                numbers("pid"),
            )
        )

    core.trace_columns(([(str(path), None)], []), take)
    return found


def _table(check: Check) -> dict[str, object]:
    named = [f"--name={check.name}"] if check.dialect == "fio" else []
    command = [*named, *check.words.split()]
    return {"name": check.name, "dialect": check.dialect, "command": command}
