"""Fuzz command lines, importers, files and the agent's input: `make fuzz`, see --help.

Each target (tools/fuzz_targets.py, tools/fuzz_files.py) is a function of a random generator. A
case is a function of target, seed and number alone, so what is printed repeats it. Cases run in a
process of their own, which is watched: an exception that is not a message for users, a case that
needs more processor time than `CASE_SECONDS` or waits without end, a process that dies or grows
beyond `MEMORY_MAX` is a finding.
Left out: coverage as a guide; the inputs are mutations of recordings, which reach what is behind
the first check.
"""

from __future__ import annotations

import argparse
import importlib
import mmap
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

CASE_SECONDS: Final = 10.0
MEMORY_MAX: Final = 200 << 20
TARGETS: Final = {
    "iozone": "fuzz_targets:iozone_words",
    "bonnie++": "fuzz_targets:bonnie_words",
    "mkfile": "fuzz_targets:mkfile_words",
    "fio": "fuzz_fio:fio_words",
    "fio-job": "fuzz_fio:fio_job",
    "filebench": "fuzz_filebench:filebench_words",
    "filebench-script": "fuzz_filebench:filebench_script",
    "ycsb": "fuzz_ycsb:ycsb_words",
    "ycsb-properties": "fuzz_ycsb:property_files",
    "import": "fuzz_targets:imported_files",
    "import-fio-json": "fuzz_fio_results:json_files",
    "import-fio-text": "fuzz_fio_results:text_files",
    "import-fio-logs": "fuzz_fio_results:log_files",
    "bon-csv2txt": "fuzz_targets:bonnie_lines",
    "study-files": "fuzz_files:study_files",
    "archives": "fuzz_files:archives",
    "stacks": "fuzz_files:stacks",
    "typed-lines": "fuzz_files:typed_lines",
    "scenarios": "fuzz_files:scenarios",
    "recordings": "fuzz_files:recordings",
    "agent-requests": "fuzz_files:agent_requests",
    "journals": "fuzz_files:journals",
    "pattern": "fuzz_traces:pattern_calls",
    "trace-blktrace": "fuzz_traces:trace_blktrace",
    "trace-file": "fuzz_traces:trace_file",
    "trace-blkparse": "fuzz_traces:trace_blkparse",
    "trace-ftrace": "fuzz_traces:trace_ftrace",
    "trace-csv": "fuzz_traces:trace_csv",
    "trace-msr": "fuzz_traces:trace_msr",
    "trace-iolog": "fuzz_traces:trace_iolog",
    "trace-disksim": "fuzz_traces:trace_disksim",
    "trace-diskstats": "fuzz_traces:trace_diskstats",
    "trace-ring": "fuzz_traces:trace_ring",
    "trace-perf": "fuzz_traces:trace_perf",
}
"""Name and function of what is fuzzed."""
_COUNTER: Final = struct.Struct("=q")
_POLL_S: Final = 0.1
_WAITS: Final = 6
"""Limit of a case's elapsed time per limit of its processor time."""
_EXIT_FINDING: Final = 9
_FINDINGS_MAX: Final = 20
_CASES_OF_PROCESS: Final = 10_000
"""Cases of one process: Python keeps every name that it interned, which is no case's memory."""


class Target(Protocol):
    """One case: draws an input, feeds it; returns normally if all is well."""

    def __call__(self, rng: random.Random, folder: Path) -> None:
        """Run one case; files may be made in `folder`."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that went wrong."""

    target: str
    seed: int
    case: int
    what: str

    def __str__(self) -> str:
        """One line that says how to see it again."""
        again = f"--only {self.target} --seed {self.seed} --first {self.case} --cases 1"
        return f"{self.target}: {self.what}\n  again: python tools/fuzz.py {again}"


def find_target(place: str) -> Target:
    """The function of ``MODULE:FUNCTION``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def peak_bytes() -> int:
    """Largest resident memory of this process since it began to be this program.

    ru_maxrss is no measure: it holds what the process was before exec, a copy of its parent.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _processor_seconds(pid: int) -> float:
    """Processor time of a process so far; of one that ended 0."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work(place: str, seed: int, first: int, cases: int, board: Path) -> int:
    """Run cases in this process, writing the number of each onto the board before it begins."""
    target = find_target(place)
    # Beside the board, so that who ends this process removes what it leaves.
    with board.open("r+b") as file, tempfile.TemporaryDirectory(dir=board.parent) as folder:
        shared = mmap.mmap(file.fileno(), _COUNTER.size)
        for case in range(first, first + cases):
            _COUNTER.pack_into(shared, 0, case)
            try:
                target(random.Random(f"{place}:{seed}:{case}"), Path(folder))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                traceback.print_exc()
                return _EXIT_FINDING
            peak = peak_bytes()
            if peak > MEMORY_MAX:
                sys.stderr.write(f"{peak >> 20} MiB of memory, more than {MEMORY_MAX >> 20}\n")
                return _EXIT_FINDING
        _COUNTER.pack_into(shared, 0, first + cases)
    return 0


@dataclass(slots=True)
class Watched:
    """One target under fuzzing, its process started again after each finding."""

    name: str
    place: str
    seed: int
    next_case: int
    end_case: int
    deadline_s: float
    case_seconds: float = CASE_SECONDS

    def run(self) -> tuple[int, list[Finding]]:
        """All cases until the deadline; how many there were, and what was found."""
        first, findings = self.next_case, list[Finding]()
        while self.next_case < self.end_case and time.monotonic() < self.deadline_s:
            what = self._one_process()
            if what:
                findings.append(Finding(self.name, self.seed, self.next_case, what))
                self.next_case += 1
                if len(findings) == _FINDINGS_MAX:
                    break
        return self.next_case - first, findings

    def _one_process(self) -> str:
        """Runs cases until one goes wrong (says how) or the time is over (says nothing)."""
        with tempfile.TemporaryDirectory(prefix="iolab-fuzz-") as folder:
            Path(folder).chmod(0o711)  # Cases of other users lie below it.
            board, log = Path(folder) / "board", Path(folder) / "log"
            board.write_bytes(_COUNTER.pack(self.next_case))
            with log.open("wb") as errors:
                cases = min(self.end_case - self.next_case, _CASES_OF_PROCESS)
                words = [self.place, self.seed, self.next_case, cases]
                process = subprocess.Popen(
                    [sys.executable, __file__, "--work", *map(str, words), board],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                )
                what = self._watch(process, board)
            lines = log.read_text(errors="replace").strip().splitlines()
            return what + (": " + " | ".join(lines[-3:]) if what and lines else "")

    def _watch(self, process: subprocess.Popen[bytes], board: Path) -> str:
        since, spent, is_started = time.monotonic(), 0.0, False
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                (case,) = _COUNTER.unpack(board.read_bytes())
                now = time.monotonic()
                if case != self.next_case:
                    if not is_started:  # Imports and what cases are made of are not fuzzing.
                        self.deadline_s += now - since
                    self.next_case, since, is_started = case, now, True
                    spent = _processor_seconds(process.pid)
                # A busy machine or a slow disk is no finding: what counts is the case's own time,
                # and a wait without end.
                elif is_started and _processor_seconds(process.pid) - spent > self.case_seconds:
                    return f"no end after {self.case_seconds:g} s of processor time"
                elif now - since > _WAITS * self.case_seconds:
                    return f"no end after {_WAITS * self.case_seconds:g} s"
                # On a busy machine the imports alone may take longer: no case is no fuzzing.
                if is_started and now > self.deadline_s:
                    return ""
        finally:
            process.kill()
            process.wait()
        (self.next_case,) = _COUNTER.unpack(board.read_bytes())
        match process.returncode:
            case 0:
                return ""
            case code if code == _EXIT_FINDING:
                return "failed"
            case code:
                return f"the process died ({code})"


def fuzz(targets: dict[str, str], seed: int, first: int, limit: tuple[int, float]) -> int:
    """Fuzz each target for its cases or seconds; prints what was found, 1 if anything was."""
    cases, seconds = limit
    is_clean = True
    for name, place in targets.items():
        deadline_s = time.monotonic() + seconds
        watched = Watched(name, place, seed, first, first + cases, deadline_s)
        n_cases, findings = watched.run()
        is_clean &= not findings
        print(f"{name}: seed {seed}, {n_cases} cases, {len(findings)} findings", flush=True)
        for finding in findings:
            print(finding, flush=True)
    return 0 if is_clean else 1


def main(arguments: list[str]) -> int:
    """Understand the command line."""
    if arguments[:1] == ["--work"]:
        place, seed, first, cases, board = arguments[1:]
        return work(place, int(seed), int(first), int(cases), Path(board))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target (60)")
    parser.add_argument("--cases", type=int, default=1 << 40, help="for each target at most")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=None, help="a new one unless given; printed")
    parser.add_argument("--only", action="append", choices=TARGETS, help="not all targets")
    parsed = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if parsed.seed is None else parsed.seed
    targets = {name: TARGETS[name] for name in parsed.only or TARGETS}
    return fuzz(targets, seed, parsed.first, (parsed.cases, parsed.seconds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
