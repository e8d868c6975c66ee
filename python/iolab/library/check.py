"""Check of a directory against published requirements: an ordinary study per requirement.

Each requirement's job runs in rounds on a `dir:` testbed, without root. Results go to a temporary
directory and are removed, like the files in the checked one. Left out: what an application does
above its files, and hours that are worse than this minute.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab import units
from iolab.errors import IolabError, StudyError
from iolab.frozen import frozen, replace
from iolab.library.conducted import RunOptions, conducted
from iolab.library.services import Services
from iolab.library.study import Study
from iolab.run.observer import Observer
from iolab.stats.requirement_word import (
    CheckWord,
    JudgedRequirement,
    MeasuredPhase,
    Obstacle,
    judge_requirement,
)
from iolab.store.db import Store
from iolab.study.requirements import REQUIREMENTS
from iolab.study.requirements.requirement import RUNTIME, Requirement
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab import Progress, protocol
    from iolab.protocol import PhaseRecord, Record
    from iolab.study.plan import Trial

TIME_MIN_NS: Final = 5_000_000_000
"""Shortest time of one requirement."""
TIME_MAX_NS: Final = 3_600_000_000_000
ROUNDS_FEWEST: Final = 6
ROUNDS_MOST: Final = 20
_ROUND_NS: Final = 1_500_000_000
"""Time of a round where there is little of it."""
_BESIDE_NS: Final = 500_000_000
"""Time of a round beside its job: files are made, the clock's own cost is measured."""
_BEGIN_NS: Final = 1_000_000_000
"""Time of a requirement before its first round and after its last."""
_JOB_NS_MIN: Final = 100_000_000
_MEMORY: Final = ("tmpfs", "ramfs", "hugetlbfs")
"""Types of file systems that keep files in memory only (Linux filesystems(5))."""
_MEMORY_DEVICES: Final = re.compile(r"/dev/z?ram\d+$")
"""Devices whose blocks lie in memory: brd and zram (Linux admin-guide/blockdev)."""
_FILE_BELOW: Final = re.compile(r"device\.(?P<device>[^.]+)\.below\.fs$")
"""Fact about the file system in which the file of a loop device lies."""
_NO_BARRIERS: Final = frozenset({"nobarrier", "barrier=0"})
"""Mount options that leave out flushes (ext4 and others; Linux filesystems/ext4)."""
_NETWORK: Final = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "glusterfs", "lustre"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "beegfs", "virtiofs"),
)
"""Types of file systems whose files lie on another machine, or on the host of this one."""
_LIMITED_BY_US: Final = ("generator_bound", "cpu_bound", "cpu_pressure", "cpu_steal")
_CACHED: Final = "page_cache"
_WRITE_THROUGH: Final = "write through"


@frozen
class CheckNote:
    """Remark about a check: a code, a sentence and what to do about it."""

    code: str
    text: str
    hint: str


@frozen
class CheckedRequirement:
    """One requirement as measured and judged."""

    judged: JudgedRequirement
    n_rounds: int
    notes: tuple[CheckNote, ...]


@frozen
class CheckResult:
    """Answer about a directory."""

    directory: Path
    file_system: str
    """Type of its file system, as in ``ext4``."""
    device: str
    """Source of the file system, as mountinfo says; may be empty."""
    checked: tuple[CheckedRequirement, ...]

    @property
    def words(self) -> tuple[CheckWord, ...]:
        """Words of the requirements that have a limit."""
        return tuple(one.judged.word for one in self.checked if one.judged.word is not None)


def find_requirements(names: str) -> tuple[Requirement, ...]:
    """Requirements by their names, separated by commas; all of them if it is empty.

    Raises
    ------
    IolabError : there is no such requirement; names the nearest.
    """
    if not names:
        return REQUIREMENTS
    known = {one.name: one for one in REQUIREMENTS}
    asked = [name.strip() for name in names.split(",")]
    if not all(asked):
        raise IolabError(f"--for '{names}' has nothing between two commas", "as in --for etcd")
    for name in asked:
        if name not in known:
            raise IolabError(
                f"--for {name}: there is no such requirement{nearest(name, known)}",
                f"requirements are {', '.join(known)}; `iolab check --list` describes them",
            )
    return tuple(known[name] for name in dict.fromkeys(asked))


def check_time_ns(text: str) -> int:
    """Time of a whole check, as typed.

    Raises
    ------
    IolabError : not a duration, or shorter than 5 s or longer than an hour.
    """
    try:
        time_ns = units.parse_duration_ns(text)
    except ValueError as error:
        raise IolabError(f"--time: {error}", "as in --time 1m") from None
    if not TIME_MIN_NS <= time_ns <= TIME_MAX_NS:
        raise IolabError(f"--time {text} is not between 5 s and 1 h", "as in --time 1m")
    return time_ns


def check_directory(
    directory: Path,
    requirements: Sequence[Requirement],
    time_ns: int,
    services: Services,
    observer: Observer,
) -> CheckResult:
    """Measure a directory and judge it by each requirement, one after the other.

    Parameters
    ----------
    directory : an existing directory; only a sub-directory of iolab's own is written, and removed.
    requirements : at least one.
    time_ns : time of all of them together, shared equally.
    services : the compiled half and the statistics.
    observer : hears of the progress.

    Raises
    ------
    IolabError : nothing can be measured there; says why.
    """
    share_ns = time_ns // len(requirements)
    with tempfile.TemporaryDirectory(prefix="iolab-check-") as folder:
        found = [
            _check(directory, requirement, share_ns, Path(folder), services, observer)
            for requirement in requirements
        ]
    facts = found[0][1]
    return CheckResult(
        directory,
        facts.get("fs.type", ""),
        facts.get("fs.source", ""),
        tuple(checked for checked, _ in found),
    )


def _check(  # noqa: PLR0913 - an inner step with the arguments of the outer one
    directory: Path,
    requirement: Requirement,
    time_ns: int,
    folder: Path,
    services: Services,
    observer: Observer,
) -> tuple[CheckedRequirement, Mapping[str, str]]:
    """One requirement, and the facts of a record."""
    study = check_study(requirement, {"kind": "dir", "path": str(directory)}, time_ns)
    out = folder / requirement.name
    options = RunOptions(out=out, is_announced=False)
    try:
        done = conducted(study, options, services, _Quiet(observer, requirement.name))
    except IolabError as error:
        error.hint = _hint_here(error.hint)
        raise
    assert done is not None, "this is no rehearsal"
    if done.problem is not None:
        done.problem.hint = _hint_here(done.problem.hint)
        raise done.problem
    with Store.open_reader(done.database) as store:
        records = [record for _, record in store.contents.records()]
        sessions = store.contents.sessions()
    if not records:
        raise StudyError(
            f"no round of {requirement.name} fitted into {units.format_duration_rounded(time_ns)}",
            "give more time, as in --time 5m",
        )
    facts = {str(name): str(value) for name, value in records[0].get("facts", {}).items()}
    facts |= _facts_of(sessions)
    return judged_records(requirement, records, facts, directory), facts


def _facts_of(sessions: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Facts of the testbed."""
    testbed = cast("Mapping[str, object]", sessions[-1]["testbed"]) if sessions else {}
    facts = cast("Mapping[str, object]", testbed.get("facts") or {})
    return {str(name): str(value) for name, value in facts.items()}


def check_study(
    requirement: Requirement,
    testbed: str | Mapping[str, object],
    time_ns: int,
    *,
    seed: int | None = None,
) -> Study:
    """Study of one requirement that takes `time_ns` at most, or one round.

    `testbed` is that of a directory; on a simulated one (`benches/check_bar.py`) the true values
    are known.
    """
    time_ns -= _BEGIN_NS
    is_simulated = not isinstance(testbed, Mapping)
    rounds = min(ROUNDS_MOST, max(ROUNDS_FEWEST, time_ns // _ROUND_NS))
    job_ns = max(_JOB_NS_MIN, time_ns // rounds - _BESIDE_NS) // requirement.timed_phases
    job = requirement.job.replace(RUNTIME, f"{max(1, job_ns // 1_000_000)}ms")
    return Study(
        name=f"check-{requirement.name}",
        testbed=testbed,
        settings={"fs": "ext4"} if is_simulated else None,
        workload=f"fio {job}",
        rounds=rounds,
        budget=None if is_simulated else units.format_duration(time_ns),
        seed=seed,
    )


def judged_records(
    requirement: Requirement,
    records: Sequence[Record],
    facts: Mapping[str, str],
    directory: Path,
) -> CheckedRequirement:
    """Judge the records of a check.

    Parameters
    ----------
    requirement : what was asked.
    records : one of each finished round.
    facts : facts about machine and testbed, by name.
    directory : as it was named, for sentences.
    """
    rounds = [{one["name"]: _measured(one) for one in record["phases"]} for record in records]
    told = _warnings(records)
    obstacles = list(_obstacles(facts, told, len(records), directory))
    judged = judge_requirement(requirement, rounds, obstacles)
    reasons = {criterion.reason for criterion in judged.criteria}
    notes = [
        CheckNote(one.code, f"{one.text}.", one.hint)
        for one in obstacles
        if one.sentence not in reasons
    ]
    notes += _notes_of_place(facts, directory)
    known = {one.code for one in obstacles}
    notes += [note for note in _notes_of_rounds(told, len(records)) if note.code not in known]
    return CheckedRequirement(judged, len(records), tuple(notes))


def _measured(phase: PhaseRecord) -> MeasuredPhase:
    (tenant,) = phase["tenants"]
    service = tenant["service"]
    workers = tenant["workers"]
    reads, writes = service["read"], service["write"]
    return MeasuredPhase(
        elapsed_ns=max((int(worker["elapsed_ns"]) for worker in workers), default=0),
        reads=reads["count"] if reads else 0,
        writes=writes["count"] if writes else 0,
        written_bytes=sum(int(worker["write_bytes"]) for worker in workers),
        flushes=service["sync"],
    )


def _warnings(records: Sequence[Record]) -> dict[str, tuple[int, protocol.Warning]]:
    """Rounds that have each warning, and its first text, by code."""
    first = dict[str, "protocol.Warning"]()
    count = Counter[str]()
    for record in records:
        inside = [*record.get("warnings", [])]
        for phase in record["phases"]:
            inside += phase.get("warnings", [])
        count.update({one["code"] for one in inside})
        for one in inside:
            first.setdefault(one["code"], one)
    return {code: (count[code], warning) for code, warning in first.items()}


def _obstacles(
    facts: Mapping[str, str],
    told: Mapping[str, tuple[int, protocol.Warning]],
    n_rounds: int,
    directory: Path,
) -> Iterator[Obstacle]:
    """Reasons that forbid a word."""
    kept = _memory_below(facts)
    if kept:
        yield Obstacle(
            "memory",
            ("PASS", "FAIL"),
            f"the files of {directory} lie in memory ({kept}), and are lost with it",
            "name a directory on a disk",
        )
    for code in _LIMITED_BY_US:
        if code in told and 2 * told[code][0] > n_rounds:
            yield Obstacle(
                code,
                ("FAIL",),
                "a processor may have been the limit, not the storage: " + told[code][1]["message"],
                "stop other programs, or check on a faster machine",
            )
    if _CACHED in told and 2 * told[_CACHED][0] > n_rounds:
        yield Obstacle(
            _CACHED,
            ("PASS",),
            "not the storage was measured but memory: " + told[_CACHED][1]["message"],
            "the file system may ignore direct I/O; name a directory on another one",
        )


def _memory_below(facts: Mapping[str, str]) -> str:
    """Memory in which the files lie: a file system, a device or a loop device; else empty."""
    kind, source = facts.get("fs.type", ""), facts.get("fs.source", "")
    if kind in _MEMORY:
        return kind
    if _MEMORY_DEVICES.match(source):
        return source
    below = ((_FILE_BELOW.match(name), value) for name, value in facts.items() if value in _MEMORY)
    return next((f"{found['device']}, a file on {value}" for found, value in below if found), "")


def _notes_of_place(facts: Mapping[str, str], directory: Path) -> Iterator[CheckNote]:
    kind = facts.get("fs.type", "")
    if kind in _NETWORK:
        yield CheckNote(
            "network",
            f"{directory} lies on a network file system ({kind}).",
            "the network and its server are part of what was measured",
        )
    off = _NO_BARRIERS & set(facts.get("fs.options", "").split(","))
    if off:
        yield CheckNote(
            "no_barriers",
            f"{directory} is mounted with {', '.join(sorted(off))}: its file system sends no"
            " flushes.",
            "what was acknowledged may be lost when the power fails; with flushes it is slower",
        )
    for name, value in facts.items():
        device, _, what = name.removeprefix("device.").partition(".queue.")
        if name.startswith("device.") and what == "write_cache" and value == _WRITE_THROUGH:
            yield CheckNote(
                "no_flushes",
                f"the kernel sends no flushes to {device}, which says that it has no volatile"
                " cache.",
                "if that is not true, flushes look faster than they are",
            )


def _notes_of_rounds(
    told: Mapping[str, tuple[int, protocol.Warning]], n_rounds: int
) -> Iterator[CheckNote]:
    """Warnings that half of the rounds have: a single one is in the interval already."""
    for code, (count, warning) in told.items():
        if 2 * count >= n_rounds:
            often = "in every round" if count == n_rounds else f"in {count} of {n_rounds} rounds"
            text = f"{warning['message'].replace(' during the trial', '')} ({often})."
            yield CheckNote(
                code, text, str(warning.get("hint", "")).replace(", or more rounds", "")
            )


def _hint_here(hint: str) -> str:
    """A hint without flags that this command does not have."""
    hint = hint.replace(", or use --on loop:1g", "")
    if "finished trials are kept" in hint:
        return "nothing was left; type the same command again"
    if "--out" in hint:
        return "make room for temporary files, or let TMPDIR name a directory that has some"
    return hint


class _Quiet:
    """An observer that passes on the progress only, under the name of the requirement."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer, self._name = observer, name

    def note(self, text: str) -> None:
        """Keep silent: what matters is in the answer."""

    def remark(self, text: str) -> None:
        """Keep silent."""

    def result(self, text: str = "") -> None:
        """Keep silent."""

    def progress(self, progress: Progress) -> None:
        """Pass it on."""
        if progress.kind != "notice":
            self._observer.progress(replace(progress, trial=self._named(progress.trial)))

    def _named(self, trial: Trial | None) -> Trial | None:
        """Return a trial whose workload has the name of the requirement instead of a program's."""
        if trial is None:
            return None
        workload = replace(trial.treatment.workload, name=self._name)
        return replace(trial, treatment=replace(trial.treatment, workload=workload))

    def clear_line(self) -> None:
        """Pass it on."""
        self._observer.clear_line()

    def ask(self, question: str, flag: str) -> str:
        """Pass it on."""
        return self._observer.ask(question, flag)
