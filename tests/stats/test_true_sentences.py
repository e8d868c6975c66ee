"""Nothing false is printed: what a judged study says, read aloud. Issue 14.

Symptoms: "there is no finished trial" where the p99 merely had too few operations (point 3); more
rounds were promised to decide where a level always failed, or was the baseline under another name,
and --resume was advised there (point 5); after Ctrl-C "look at why trials failed" although none
had (point 6), and advice without a verb; a caveat that intervals "will be wide" beside one without
any width (point 7); percentages and multiples in one sentence (point 15). Causes: one text for
several reasons, and advice that did not look at what had happened.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from iolab.report.answer import answer
from iolab.stats.judge import judge
from iolab.stats.sentence import rounds_text
from iolab.store.continuing import finish_hint, rounds_hint


def caveats(verdict):
    return {c.kind: c.sentences for c in verdict.caveats}


def without(study, metric, level):
    """A study in which a level lacks a metric."""
    kept = [
        m
        for m in study.measurements
        if not (m.metric == metric and m.levels[study.study.compared_factor] == level)
    ]
    return dataclasses.replace(study, measurements=kept)


def asking(study, metric):
    return dataclasses.replace(study, study=dataclasses.replace(study.study, metric=metric))


def stopped_after(study, ordinal):
    trials = [
        dataclasses.replace(t, status="interrupted") if t.ordinal > ordinal else t
        for t in study.trials
    ]
    return dataclasses.replace(study, trials=trials)


def test_point_3_a_quantile_of_too_few_operations_gives_way_and_says_so(canned):
    study = asking(canned.make_study(throughput={"bfq": 0.5}), "latency_ns_p99")
    verdict = judge(without(study, "latency_ns_p99", "bfq"))
    assert "finished trial" not in verdict.sentence
    assert verdict.sentence.startswith("By p99 latency nothing can be compared (too few")
    assert verdict.headline
    assert verdict.headline[0].metric != "latency_ns_p99"
    assert "is not known of both sides" in caveats(verdict)["metric_missing"]


def test_point_3_each_reason_for_comparing_nothing_has_its_words(canned):
    assert (
        judge(canned.make_study(rounds=0)).sentence == "Nothing is compared: no trial has finished."
    )
    only = judge(canned.make_study(is_failed=lambda t: t.levels["scheduler"] == "bfq"))
    assert only.sentence.startswith(
        "Nothing is compared: 'none' is the only level of scheduler that was"
    )
    lost = judge(canned.make_study(is_failed=lambda t: t.levels["scheduler"] == "none"))
    assert "no complete round in common" in lost.sentence
    assert "Nothing is known of scheduler 'none': every trial failed." in lost.sentence


def test_point_5_a_level_that_always_fails_is_named_and_promised_nothing(canned):
    study = canned.make_study(
        levels=("none", "bfq", "kyber"),
        noise=0.3,
        is_failed=lambda t: t.levels["scheduler"] == "bfq",
    )
    verdict = judge(study)
    assert "Nothing is known of scheduler 'bfq': every trial failed." in verdict.sentence
    stopped = stopped_after(study, 20)
    verdict = judge(stopped)
    told = caveats(verdict)["unfinished"]
    assert "--resume" not in told
    assert "Correct first why every trial of bfq failed, or leave it out" in told
    (first, command), *_ = answer(stopped, verdict, []).steps
    assert command == ""
    assert "correct first why every trial of bfq failed" in first


def test_point_5_without_a_complete_round_no_number_of_rounds_is_named(canned):
    failing = {"none": {1, 3}, "bfq": {2, 4}}
    verdict = judge(
        canned.make_study(rounds=4, is_failed=lambda t: t.round in failing[t.levels["scheduler"]])
    )
    only = verdict.headline[0]
    assert only.effect.ratio is None
    assert only.effect.further_rounds is None
    assert rounds_text(only.effect) == "no complete round to judge by"
    assert "more round" not in verdict.sentence


def test_point_5_levels_that_are_one_setting_are_not_told_apart_by_more_rounds(canned):
    study = canned.make_study(noise=0.4)
    knobs = {t.trial_id: {"scheduler": "none"} for t in study.trials}
    study = dataclasses.replace(study, knobs=knobs)
    verdict = judge(study)
    assert verdict.headline_word == "undecided"
    assert "both are the same setting, so that no further round" in verdict.sentence
    assert not any("Measure on" in text for text, _ in answer(study, verdict, []).steps)
    told = caveats(judge(stopped_after(study, 12)))["unfinished"]
    assert "--resume" not in told
    assert "Leave one of bfq and none out, in a new study" in told


def test_point_6_after_ctrl_c_nobody_looks_for_failures(canned):
    verdict = judge(stopped_after(canned.make_study(), 12))
    told = caveats(verdict)
    assert verdict.trials.failed == 0
    assert "incomplete_rounds" in told
    assert not any("failed" in text for text in told.values())
    assert "Finish them: `iolab run DIR --resume`" in told["unfinished"]
    failed = caveats(judge(canned.make_study(is_failed=lambda t: t.ordinal == 0)))
    assert "failed" in failed["incomplete_rounds"]
    assert "--resume" not in failed["incomplete_rounds"]


def test_point_6_every_hint_has_a_verb_and_names_what_continues(canned):
    study = dataclasses.replace(canned.make_study().study, rounds_planned=3)
    assert rounds_hint(study, 5).endswith(": `iolab run DIR --resume --rounds 5`.")
    assert finish_hint(study).startswith("Finish them: `iolab run DIR --resume`")
    limited = dataclasses.replace(study, spec_toml='budget = "1m"')
    more = "`iolab run DIR --resume --rounds 5` and a larger --budget."
    assert rounds_hint(limited, 5).endswith(more)
    assert "If its budget is used up, give a larger one" in finish_hint(limited)


def test_point_7_few_rounds_that_are_all_equal_are_not_few(canned):
    """The plan's guess about wide intervals is gone once rounds were judged."""
    from iolab.study.checks import few_rounds

    note = few_rounds(3)
    assert note.message.startswith("only 3 complete rounds: where results vary from round to round")
    study = canned.make_study(rounds=3, noise=0.0, throughput={"bfq": 2.0}, kind="simulated")
    equal = judge(dataclasses.replace(study, caveats=(note,)))
    assert equal.headline_word == "better"
    assert "few_rounds" not in caveats(equal)
    assert "In 2 of 2 comparisons nothing depended on it" in caveats(equal)["rounds_by_seed"]
    noisy = judge(dataclasses.replace(canned.make_study(rounds=3), caveats=(note,)))
    assert caveats(noisy)["few_rounds"].startswith("The headline rests on 3 complete rounds.")


@pytest.mark.parametrize("factors", [(1.7, 29.0), (0.6, 3.0), (0.9, 0.2), (1.3, 1.6)])
def test_point_15_a_sentence_has_one_form(canned, factors):
    levels = ("none", "bfq", "kyber")
    changed = dict(zip(levels[1:], factors, strict=True))
    verdict = judge(canned.make_study(levels=levels, throughput=changed, noise=0.1))
    headline = verdict.sentence.split(". ")[0].partition(": ")[2]
    headline = re.sub(r"\((below|within) \S+ %\)|less than \S+ %|\S+ % chance", "", headline)
    assert ("%" in headline) != ("times" in headline), headline


def test_point_15_an_effect_has_the_form_of_its_interval(canned):
    verdict = judge(canned.make_study(noise=2.0, seed=3, rounds=4))
    effect = verdict.headline[0].effect
    assert effect.interval_95.high > 2
    said = re.sub(r"95 % interval|\S+ % chance|and 5 % beyond", "", verdict.sentence)
    assert "%" not in said, said
    assert "times as fast" in said


def test_settings_that_changed_are_not_another_machine(canned):
    told = caveats(judge(canned.make_study()))["conditions_changed"]
    assert "run the study again with these settings held" in told
