"""Long runs of what tests try a slice of: damaged studies, and kills at random moments.

``python tools/soak.py damaged [--copies 200] [--seed N]`` damages copies of a study in many ways
(`DAMAGES`): one bit or a few bytes anywhere, in the header, cut, emptied; of a study whose run was
killed also the log with the newest records. It reports every one: the report must say what that of
the undamaged study says, or be refused with exit code 5. ``python tools/soak.py kills [--kills 100]
[--seed N]`` kills the command line at random moments, before its first record too, and then does
what it is told: what was advised works, and no finished trial is lost or run twice. Exits 1 if
anything went wrong.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from unittest import mock

from iolab.cli.console import Console
from iolab.cli.main import main as main_of_iolab
from iolab.store.db import STORE_NAME, Store

ROOT: Final = Path(__file__).parents[1]
_IOLAB: Final = (sys.executable, "-m", "iolab.cli")
_TIME_LIMIT_S: Final = 120.0
_EXIT_DAMAGED: Final = 5
_LONGEST_OVERWRITE: Final = 64
_KILLED_AFTER: Final = 14
"""Of 20 trials."""
LOG_NAME: Final = f"{STORE_NAME}-wal"
_HEADER_BYTES: Final = 100
_LOG_HEADER_BYTES: Final = 32

# --- damaged copies -----------------------------------------------------------------------------

STUDY_ARGUMENTS: Final = (
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--seed", "7"),
    *("--test", "write,random-read", "--record-size", "4k,16k", "--file-size", "1m"),
    *("--rounds", "5"),
)


def run(
    *words: str | Path, folder: Path, within: AbstractContextManager[Any] | None = None
) -> tuple[int, str, str]:
    """Exit code and output of the command line, in a process that is a copy of this one.

    A file that somebody damaged may do anything to who reads it, hence the process; a copy,
    because to start from nothing takes longer than the reading.
    """
    out, err = folder / "stdout", folder / "stderr"
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 125
        try:
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            with within or nullcontext():
                code = main_of_iolab([str(word) for word in words])
            sys.stdout.flush()
        finally:
            os._exit(code)
    deadline_s = time.monotonic() + _TIME_LIMIT_S
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline_s:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    printed, errors = (path.read_text(errors="replace") for path in (out, err))
    return os.waitstatus_to_exitcode(status), printed, errors


def make_study(folder: Path) -> Path:
    """A finished study, with what an interrupted writer leaves free in its file."""
    out = folder / "whole"
    code, _, errors = run(*STUDY_ARGUMENTS, "--out", out, folder=folder)
    if code != 0:
        raise RuntimeError(errors)
    return out / STORE_NAME


def make_killed_study(folder: Path) -> Path:
    """A study that was killed when most of its records lay in the write-ahead log."""
    out, commit, n_stored = folder / "killed", Store.commit_record, 0

    def commit_and_die(*arguments: Any) -> None:
        nonlocal n_stored
        commit(*arguments)
        n_stored += 1
        if n_stored == _KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    within = mock.patch.object(Store, "commit_record", commit_and_die)
    code, _, errors = run(*STUDY_ARGUMENTS, "--out", out, folder=folder, within=within)
    if code != -signal.SIGKILL or not (out / LOG_NAME).stat().st_size:
        raise RuntimeError(errors)
    return out / STORE_NAME


def said_of(database: Path, folder: Path) -> tuple[int, str, str]:
    """Exit code of a report; everything that it says, printed, drawn and as JSON; its messages."""
    out = folder / "report"
    code, printed, errors = run("report", database, "--out", out, folder=folder)
    texts = [printed, *(path.read_text() for path in sorted(out.glob("*.[hj]*")))]
    said = "\n".join(texts)
    # What is advised names the directory of a study, which a copy has elsewhere.
    for path, name in ((out, "OUT"), (database, "DATA"), (database.parent, "STUDY")):
        said = said.replace(str(path), name)
    shutil.rmtree(out, ignore_errors=True)
    return code, said, errors


def warm_up(database: Path, folder: Path) -> None:
    """Load here, once, what every copy of this process needs for a report."""
    console = Console(io.StringIO(), io.StringIO())
    main_of_iolab(["report", str(database), "--out", str(folder / "warm")], console=console)


Change = Callable[[bytes, random.Random], tuple[bytes | None, str]]
"""Change of a file's content, None if it is removed; and what was done."""


def overwritten(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """One flipped bit, or a short overwrite."""
    changed = bytearray(content)
    at = rng.randrange(len(changed))
    if rng.random() < 0.6:
        bit = rng.randrange(8)
        changed[at] ^= 1 << bit
        return bytes(changed), f"bit {bit} of byte {at}"
    count = min(rng.randint(1, _LONGEST_OVERWRITE), len(changed) - at)
    filling = rng.choice((bytes(count), b"\xff" * count, rng.randbytes(count)))
    changed[at : at + count] = filling
    return bytes(changed), f"{count} bytes at {at}"


def _flipped_within(size: int) -> Change:
    """One flipped bit among the first bytes."""

    def change(content: bytes, rng: random.Random) -> tuple[bytes, str]:
        at, bit = rng.randrange(size), rng.randrange(8)
        return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :], f"{at}, {bit}"

    return change


def _to(content: bytes | None) -> Change:
    """Always the same content, or none."""
    return lambda _content, _rng: (content, "")


def cut(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The beginning of a file."""
    size = rng.randrange(1, len(content))
    return content[:size], f"cut to {size} of {len(content)}"


@dataclass(frozen=True, slots=True)
class Damage:
    """A way of damaging a file of a study."""

    name: str
    is_killed: bool
    """Of the study that was killed, or of the finished one."""
    file: str
    change: Change
    may_be_whole: bool = False
    """True if some such damage hits only what nobody reads, so that the report is that of before:
    free pages, counters in the header, pages that the log replaces.
    """


DAMAGES: Final = (
    Damage("database overwritten", False, STORE_NAME, overwritten, may_be_whole=True),
    Damage(
        "database's header flipped",
        False,
        STORE_NAME,
        _flipped_within(_HEADER_BYTES),
        may_be_whole=True,
    ),
    Damage("database cut", False, STORE_NAME, cut),
    Damage("database emptied", False, STORE_NAME, _to(b"")),
    Damage("killed: log overwritten", True, LOG_NAME, overwritten),
    Damage("killed: log's header flipped", True, LOG_NAME, _flipped_within(_LOG_HEADER_BYTES)),
    Damage("killed: log cut", True, LOG_NAME, cut),
    Damage("killed: log emptied", True, LOG_NAME, _to(b"")),
    Damage("killed: log removed", True, LOG_NAME, _to(None)),
    Damage("killed: database overwritten", True, STORE_NAME, overwritten, may_be_whole=True),
)


@dataclass(slots=True)
class Tally:
    """Counts of many tries."""

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])

    def tell(self, what: str) -> int:
        """Print it; returns the exit code."""
        for failure in self.failures:
            print(f"  FAILED {failure}")
        print(f"{what}:")
        for kind, count in sorted(self.counts.items()):
            print(f"  {count:5} {kind}")
        print(f"{len(self.failures)} failures")
        return 1 if self.failures else 0


@dataclass(frozen=True, slots=True)
class Undamaged:
    """A study's files, and what its report says."""

    files: dict[str, bytes]
    said: str

    @classmethod
    def of(cls, database: Path, folder: Path) -> Undamaged:
        """Read and report it; SQLite's index of the log is left out, which is made anew."""
        names = (STORE_NAME, LOG_NAME, f"{STORE_NAME}.lock")
        paths = [path for name in names if (path := database.with_name(name)).exists()]
        files = {path.name: path.read_bytes() for path in paths}
        code, said, errors = said_of(database, folder)
        if code != 0:
            raise RuntimeError(errors)
        return cls(files, said)

    def try_with(self, damage: Damage, folder: Path, rng: random.Random) -> tuple[str, str]:
        """Report a damaged copy; the outcome in a word, and more of it if it is a failure."""
        place = folder / "copy"
        place.mkdir()
        changed, what = damage.change(self.files[damage.file], rng)
        for name, content in {**self.files, damage.file: changed}.items():
            if content is not None:
                (place / name).write_bytes(content)
        code, said, errors = said_of(place / STORE_NAME, place)
        shutil.rmtree(place)
        if code == 0 and said == self.said:
            return "whole", ""
        if code == _EXIT_DAMAGED and not said.strip():
            return f"refused with {code}", ""
        differs = first_difference(self.said, said) if code == 0 else ""
        told = errors.strip()[:300]
        return "FAILED", f"{damage.name} ({what}): exit {code}: {told}{differs}"


def first_difference(expected: str, found: str) -> str:
    """The first line in which two texts differ, as both have it."""
    pairs = zip_longest(expected.splitlines(), found.splitlines())
    for number, (theirs, ours) in enumerate(pairs, 1):
        if theirs != ours:
            return f"\n    line {number}: {ours!r}\n    should be: {theirs!r}"
    return ""


def try_damaged(copies: int, seed: int) -> Tally:
    """Report damaged copies of studies; each must be refused, or say what the whole one says."""
    tally, rng = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="iolab-soak-") as name:
        folder = Path(name)
        database = make_study(folder)
        warm_up(database, folder)
        whole = Undamaged.of(database, folder)
        killed = Undamaged.of(make_killed_study(folder), folder)
        for number in range(copies):
            damage = DAMAGES[number % len(DAMAGES)]
            outcome, more = (killed if damage.is_killed else whole).try_with(damage, folder, rng)
            tally.counts[f"{damage.name}: {outcome}"] += 1
            if more:
                tally.failures.append(f"copy {number}: {more}")
    return tally


# --- kills --------------------------------------------------------------------------------------

_KILLED_STUDY: Final = """
name = "killed"
testbed = "{testbed}"
seed = 7
rounds = 4
[factors]
record_size = ["4k", "16k", "64k"]
[[workloads]]
kind = "iozone"
tests = ["write"]
file_size = "1m"
"""
_TESTBEDS: Final = ("sim:fixed-100us", "dir:{folder}")
N_TRIALS: Final = 12
_LONGEST_S: Final = 3.0
_STEPS_MAX: Final = 6
_EXIT_BUG: Final = 70
Words = list[str]


@dataclass(slots=True)
class Victim:
    """One study that is killed now and then, and what is known of it."""

    folder: Path
    testbed: str
    known: dict[str, int] = field(default_factory=dict[str, int])
    """Finished trials and their records."""

    @property
    def out(self) -> Path:
        """Directory of its results."""
        return self.folder / "out"

    def command(self, *more: str) -> list[str]:
        """Words that are typed."""
        study = self.folder / "study.toml"
        study.write_text(_KILLED_STUDY.format(testbed=self.testbed))
        return [*_IOLAB, "run", str(study), "--out", str(self.out), *more]

    def killed(self, words: Sequence[str], rng: random.Random) -> tuple[str, str]:
        """Start, kill after a while: the front end, its group, or its agent; what it printed."""
        whom = rng.choice(("front end", "group", "agent"))
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        began = rng.random() < 0.5
        if began:  # Where it is short, and was never hit by chance: around the making of the store.
            self._wait_until_begun(process)
        time.sleep(rng.uniform(0, 0.3 if began else _LONGEST_S))
        victims = _children_of(process.pid) if whom == "agent" else [process.pid]
        for pid in victims:
            _kill(pid, is_group=whom == "group")
        text, _ = process.communicate(timeout=_TIME_LIMIT_S)
        return whom, text

    def _wait_until_begun(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None and not self.out.exists():
            time.sleep(0.002)

    def finished(self) -> dict[str, int]:
        """Finished trials and their records, as they are stored."""
        if not (self.out / STORE_NAME).exists():
            return {}
        with Store.open_reader(self.out / STORE_NAME) as store:
            rows = store.contents.connection.execute(
                "SELECT trial_id, record_id FROM record WHERE status = 'ok'"
            )
            return dict(rows)


def _children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _kill(pid: int, *, is_group: bool) -> None:
    with suppress(ProcessLookupError):
        (os.killpg if is_group else os.kill)(pid, signal.SIGKILL)


def next_steps(victim: Victim, text: str, words: Sequence[str], rng: random.Random) -> list[Words]:
    """Commands that a user types next: as told; where nothing could be said, the same, or with
    --resume.
    """
    restore = [[*_IOLAB, "restore"]] if "iolab restore" in text else []
    if re.search(r"without\s+--resume", text):
        return [*restore, victim.command()]
    if "--resume" in text:
        return [*restore, victim.command("--resume")]
    if restore:
        return [*restore, list(words)]
    return [victim.command(*rng.choice(([], ["--resume"])))]


def try_kills(kills: int, seed: int, testbeds: Sequence[str] = _TESTBEDS) -> Tally:
    """Kill studies, go on as told; each must get to its end with each trial run once."""
    tally, rng = Tally(), random.Random(seed)
    n_killed = 0
    while n_killed < kills:
        with tempfile.TemporaryDirectory(prefix="iolab-soak-") as name:
            folder = Path(name)
            testbed = rng.choice(testbeds).format(folder=folder)
            victim = Victim(folder, testbed)
            words, told = victim.command(), list[str]()
            steps, problem = [words], ""
            for _ in range(rng.choice((1, 1, 2))):
                whom, text = victim.killed(words, rng)
                n_killed += 1
                stage = "before its first record" if not victim.finished() else "later"
                tally.counts[f"{testbed.partition(':')[0]} {whom} killed {stage}"] += 1
                told.append(f"[{whom} killed] {text}")
                problem = _lost(victim)
                steps = next_steps(victim, text, words, rng)
                words = steps[-1]
                if problem:
                    break
            problem = problem or _go_on(victim, steps, told, rng)
            print(f"{n_killed} of {kills} kills, {testbed}: {problem or 'ok'}", flush=True)
            if problem:
                tally.failures.append(f"kill {n_killed}: {problem}\n    " + "\n    ".join(told))
    return tally


def _go_on(victim: Victim, steps: list[Words], told: list[str], rng: random.Random) -> str:
    """Do what is said until the study is at its end; what went wrong."""
    for _ in range(_STEPS_MAX):
        words, *steps = steps
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_S
        )
        told.append(f"$ {shlex.join(words[3:])} -> {done.returncode}: {done.stderr[-600:]}")
        problem = _lost(victim)
        if problem or "Traceback" in done.stderr or done.returncode == _EXIT_BUG:
            return problem or "a bug"
        if len(victim.known) == N_TRIALS:
            return ""
        if not steps:
            steps = next_steps(victim, done.stderr, words, rng)
            if steps == [words]:
                return "the advice led nowhere"
    return "the advice never came to an end"


def _lost(victim: Victim) -> str:
    """Finished trials that are gone, or were run again."""
    now = victim.finished()
    changed = [trial for trial, record in victim.known.items() if now.get(trial) != record]
    victim.known = now
    return f"finished trials were lost or run again: {', '.join(changed)}" if changed else ""


def in_private_state(arguments: Sequence[str]) -> None:
    """As root, begin again where the journals of other runs are not seen, and ours by nobody."""
    if os.geteuid() != 0 or os.environ.get(_PRIVATE):
        return
    state = Path("/var/lib/iolab")
    state.mkdir(parents=True, exist_ok=True)
    script = f'mount -t tmpfs none {state} && exec "$@"'
    program = [sys.executable, __file__, *arguments]
    os.execvpe(
        "unshare",
        ["unshare", "--mount", "sh", "-c", script, "sh", *program],
        {**os.environ, _PRIVATE: "1"},
    )


_PRIVATE: Final = "IOLAB_SOAK_IS_PRIVATE"


def main(arguments: Sequence[str]) -> int:
    """Understand the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("damaged", "kills"))
    parser.add_argument("--copies", type=int, default=200, help="of a study, damaged (200)")
    parser.add_argument("--kills", type=int, default=100, help="of the command line (100)")
    parser.add_argument("--seed", type=int, default=None, help="a new one unless given; printed")
    parsed = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if parsed.seed is None else parsed.seed
    if parsed.what == "damaged":
        return try_damaged(parsed.copies, seed).tell(f"damaged, seed {seed}")
    in_private_state(arguments)
    return try_kills(parsed.kills, seed).tell(f"kills, seed {seed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
