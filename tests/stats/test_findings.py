"""The list of findings: complete, without dead rows, and each row says what documents need."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import ModuleType

import pytest

from iolab.stats.finding import FindingKind
from iolab.stats.findings import FINDINGS, SECTIONS
from iolab.stats.findings.judged import JUDGED
from iolab.stats.findings.recorded import RECORDED
from iolab.stats.judge import judge
from iolab.store.rows import Caveat

ROOT = Path(__file__).parents[2]
NAMES = {kind.name for kind in FINDINGS}
RUST = re.compile(r'(?:Warning::new\(|Incident\s*\{\s*code:)\s*"([a-z_]+)"')
RUST_CONSTANT = re.compile(r"Warning::new\(\s*([A-Z_]+)\b")
PYTHON = re.compile(r'\b(?:Caveat|PlanNote|Finding)\(\s*"([a-z_]+)"')


def _sources() -> dict[Path, str]:
    """Texts of the programs, without the list itself and without tests of Rust."""
    rust = [p for p in (ROOT / "crates").rglob("*.rs") if "tests" not in p.parts]
    python = (ROOT / "python/iolab").rglob("*.py")
    return {
        path: path.read_text(encoding="utf-8").partition("\n#[cfg(test)]")[0]
        for path in (*rust, *python)
        if path.parent.name != "findings"
    }


def _constant(texts: dict[Path, str], name: str) -> str:
    found = (re.search(rf'const {name}: &str =\s*"([a-z_]+)"', text) for text in texts.values())
    return next(match[1] for match in found if match)


def test_every_code_that_a_program_writes_has_a_row() -> None:
    texts = _sources()
    written = {code for text in texts.values() for code in RUST.findall(text)}
    written |= {code for text in texts.values() for code in PYTHON.findall(text)}
    constants = {name for text in texts.values() for name in RUST_CONSTANT.findall(text)}
    written |= {_constant(texts, name) for name in constants}
    assert len(written) > 80
    assert sorted(written - NAMES) == []


def test_every_row_is_written_by_some_program() -> None:
    everything = "\n".join(_sources().values())
    assert [name for name in sorted(NAMES) if f'"{name}"' not in everything] == []


@pytest.mark.parametrize("kind", FINDINGS, ids=lambda kind: kind.name)
def test_a_row_says_what_documents_and_renderers_need(kind: FindingKind) -> None:
    assert kind.section in SECTIONS
    assert kind.seen
    assert kind.advice
    assert not kind.seen.endswith(".")
    assert (kind.severity == "result") == (not kind.is_listed)
    assert (kind in JUDGED) == (kind.find is not None or kind.derive is not None)
    assert kind.derive is None or kind.title
    page = (ROOT / "docs/explanation/honesty.md").read_text(encoding="utf-8")
    assert page.count(f"\n| `{kind.name}` |") == 1


def test_kinds_are_different_and_in_two_lists() -> None:
    assert len(NAMES) == len(FINDINGS) == len(JUDGED) + len(RECORDED)


def test_places_of_a_recorded_finding_are_counted_and_the_first_is_named(
    canned: ModuleType,
) -> None:
    caveat = Caveat("cpu_steal", "the host took 3 % of the CPU", "a machine of its own")
    data = canned.make_study(caveats=lambda t: (caveat,) if t.ordinal % 2 else ())
    (found,) = [f for f in judge(data).caveats if f.kind == "cpu_steal"]
    assert found.count == sum(t.ordinal % 2 for t in data.trials) > 1
    assert found.about.scope == "trial"
    assert found.about.trial_id == next(t.trial_id for t in data.trials if t.ordinal % 2)
    assert found.sentences == "The host took 3 % of the CPU. A machine of its own."


def test_findings_of_judging_carry_their_numbers(canned: ModuleType) -> None:
    data = canned.make_study(is_failed=lambda t: t.ordinal == 0, rounds=4)
    found = {f.kind: f for f in judge(data).caveats}
    values = {e.name: e.value for e in found["failed_trials"].evidence}
    assert values == {"failed": 1, "planned": len(data.trials)}
    assert [e.value for e in found["few_rounds"].evidence] == [3]


def test_the_guess_of_a_plan_gives_way_to_what_judging_says(
    canned: ModuleType,
) -> None:
    note = Caveat("few_rounds", "only 3 rounds are planned", "more")
    data = canned.make_study(rounds=6)
    data = dataclasses.replace(data, caveats=(note,))
    assert "few_rounds" not in {f.kind for f in judge(data).caveats}
