"""The page, read aloud by a newcomer. Issue 14, point 15.

Symptoms: "parameters: 4 assume" in the methods, a tag of the simulator's files; "cold page cache
before each trial" of a simulation, which has none; workloads "1s500ms long"; "8 levels: is too
short to tell"; "18 of 57 of 72 series that can show a stall stall"; a list of methods with paired
tests on the page of a table that is never paired; "imported, imported". Cause: texts put together
that nobody read in the place where they are shown.
"""

from __future__ import annotations

import dataclasses

import pytest

from iolab.report.charts.steady_state import WORDS
from iolab.report.methods import environment_rows, methods_paragraph
from iolab.stats.judge import judge
from iolab.wording import profile_text

SPEC = """
name = "x"
[[workloads]]
name = "readers"
kind = "mixed"
duration = "1s500ms"
"""


@pytest.fixture
def simulated(canned):
    study = canned.make_study(kind="simulated")
    facts = {"sim.profile.disk": "A disk (1998) (parameters: 4 assume, 2 doc)"}
    row = dataclasses.replace(
        study.study,
        spec_toml=SPEC,
        settings={"cache": "cold", "direct": "true", "engine": "psync"},
    )
    return dataclasses.replace(study, study=row, facts=facts)


def test_tags_of_profiles_are_words(simulated):
    said = methods_paragraph(simulated, judge(simulated))
    assert "A disk (1998) (parameters: 2 from data sheets, 4 assumed)" in said
    rows = dict(environment_rows(simulated))
    assert rows["sim.profile.disk"].endswith("(parameters: 2 from data sheets, 4 assumed)")


@pytest.mark.parametrize("fact", ["a disk", "6.18.5", "x (parameters: 3 guesses)", ""])
def test_other_facts_stay_as_they_are(fact):
    assert profile_text(fact) == fact


def test_methods_of_a_simulation_hold_only_what_it_has(simulated):
    said = methods_paragraph(simulated, judge(simulated))
    assert "page cache" not in said
    assert "engine" not in said
    assert "Held constant: direct I/O." in said
    assert "readers (1.50 s long)" in said


def test_a_caption_needs_one_verb():
    """Words stand behind "8 levels:", so that none begins with "is" of its own."""
    assert WORDS["too_short"] == "too short to tell"


def test_the_page_names_only_methods_that_were_used(canned, tmp_path):
    from iolab.report import write_all

    study = canned.make_study(rounds=2)
    page = write_all(study, judge(study), tmp_path).html.read_text()
    assert "paired t intervals" in page
    assert "every pair of levels by paired t" not in page  # Two levels are one pair: the verdict.
