"""Fuzzing: some hundred cases of each target, and that what goes wrong is noticed."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuzz

ROOT = Path(__file__).parents[1]
SEED = 20240607
CASES = 400
CASES_OF_SLOW = {"study-files": 100, "archives": 40, "scenarios": 200, "stacks": 200} | {
    "recordings": 40,
    "agent-requests": 40,
    "journals": 40,
}
"""Fewer where a case takes a process, a database or a simulation."""

BAD_TARGETS = """
import time

def wrong(rng, folder):
    if rng.random() < 0.1:
        raise ValueError("a bug")

def endless(rng, folder):
    time.sleep(0 if rng.random() < 0.9 else 3600)

def spins(rng, folder):
    while rng.random() < 0.3:
        rng.random = lambda: 0

def dies(rng, folder):
    if rng.random() < 0.1:
        import os
        os.abort()

def greedy(rng, folder):
    if rng.random() < 0.1:
        bytes(range(256)) * (300 << 12)
"""


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_a_few_cases_of_each_target_are_clean(name):
    cases = CASES_OF_SLOW.get(name, CASES)
    words = ["--only", name, "--seed", str(SEED), "--cases", str(cases), "--seconds", "120"]
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "fuzz.py", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: seed {SEED}, {cases} cases, 0 findings" in done.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "message", "case_seconds"),
    [
        ("wrong", "ValueError: a bug", 20),
        ("endless", "no end after 3 s", 0.5),
        ("spins", "no end after (0.5 s of processor time|3 s)", 0.5),
        ("dies", r"the process died \(-6\)", 20),
        ("greedy", "MiB of memory, more than 200", 20),
    ],
)
def test_what_goes_wrong_is_found_with_its_case(tmp_path, monkeypatch, name, message, case_seconds):
    (tmp_path / "bad_targets.py").write_text(BAD_TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place = f"bad_targets:{name}"
    deadline_s = time.monotonic() + 50
    watched = fuzz.Watched(name, place, 5, 0, 30, deadline_s, case_seconds)
    n_cases, findings = watched.run()
    assert findings, n_cases
    assert re.search(message, findings[0].what), findings[0]
    assert f"--first {findings[0].case} --cases 1" in str(findings[0])
    case = findings[0].case
    again = fuzz.Watched(name, place, 5, case, case + 1, deadline_s, case_seconds)
    assert len(again.run()[1]) == 1, "the same case fails again"


def test_inputs_are_mutated_and_understood():
    """Most mutations still reach what is behind the first check; none is a copy of the rest."""
    import random

    import fuzz_targets
    from iolab import _core
    from iolab.errors import DialectError

    drawn, understood = set(), 0
    for case in range(300):
        rng = random.Random(case)
        words = fuzz_targets.mutated_words(rng, fuzz_targets._command_lines("iozone"))
        drawn.add(tuple(words))
        try:
            _core.dialect_parse("iozone", words)
        except DialectError:
            continue
        understood += 1
    assert len(drawn) > 200
    assert 30 < understood < 270, understood
