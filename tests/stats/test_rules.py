"""The twelve rules: each is asked, each broken one says what to do, and unfair ones are not."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from iolab.stats.judge import judge
from iolab.stats.rules import RULES, check_rules
from iolab.store.rows import StudyData

STATUSES = {"kept", "broken", "unknown", "not applicable"}


def _answers(study: StudyData) -> dict[int, str]:
    return {f.number: f.status for f in check_rules(study, judge(study))}


@pytest.mark.parametrize("name", ["demo", "record_sizes", "published_d2", "simulated"])
def test_every_rule_answers_and_a_broken_one_says_what_to_do(canned: ModuleType, name: str) -> None:
    study = getattr(canned, name)()
    findings = check_rules(study, judge(study))
    assert [finding.number for finding in findings] == list(range(1, 13)) == [n for n, *_ in RULES]
    for finding in findings:
        assert finding.status in STATUSES
        assert finding.evidence
        assert finding.advice or finding.status != "broken", finding.number


def test_a_quantile_that_one_trial_alone_has_breaks_nothing(canned: ModuleType) -> None:
    study = canned.demo()
    rare = next(m for m in study.measurements if m.metric == "latency_ns_p999")
    kept = [m for m in study.measurements if m.metric != "latency_ns_p999"]
    assert _answers(dataclasses.replace(study, measurements=[*kept, rare]))[5] == "kept"


def test_single_runs_break_what_they_should(canned: ModuleType) -> None:
    answers = _answers(canned.make_study(rounds=1))
    assert answers[5] == answers[7] == "broken"
    assert _answers(canned.make_study(rounds=8))[5] == "kept"


def test_trials_that_did_not_finish_break_the_second(canned: ModuleType) -> None:
    study = canned.make_study()
    trials = [dataclasses.replace(t, status=None) for t in study.trials[-2:]]
    open_study = dataclasses.replace(study, trials=[*study.trials[:-2], *trials])
    assert _answers(study)[2] == "kept"
    assert _answers(open_study)[2] == "broken"


def test_throughput_alone_breaks_the_eighth(canned: ModuleType) -> None:
    study = canned.make_study()
    only = [m for m in study.measurements if m.metric.startswith("throughput")]
    assert _answers(study)[8] == "kept"
    assert _answers(dataclasses.replace(study, measurements=only))[8] == "broken"


def test_a_machine_without_name_breaks_the_ninth(canned: ModuleType) -> None:
    facts = {"kernel.release": "6.18.5", "cpu.model": "x", "memory.total": "1 kB"}
    assert _answers(canned.make_study(facts=facts))[9] == "kept"
    assert _answers(canned.make_study(facts={}))[9] == "broken"
