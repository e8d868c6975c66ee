"""Nothing false is printed: what a judged study says, read aloud. Issue 14, point 15.

Symptoms: "there is no finished trial" where the p99 merely had too few operations; more rounds were
promised to decide where a level always failed, or was the baseline under another name, and --resume
was advised there; after Ctrl-C "look at why trials failed" although none had, and advice without a
verb; a caveat that intervals "will be wide" beside one without any width; percentages and multiples
in one sentence; shares above 100 %. Causes: one text for several reasons, and advice that did not
look at what had happened.
"""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap

import pytest

from iolab import units
from iolab.report.answer import answer
from iolab.stats.judge import judge
from iolab.stats.methods.log_ratio import geometric_interval
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import headline_sentence, rounds_text
from iolab.store.continuing import finish_hint, rounds_hint
from iolab.store.rows import Caveat, Nature

SECOND_NS = 1_000_000_000


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


def test_a_quantile_of_too_few_operations_gives_way_and_says_so(canned):
    study = asking(canned.make_study(throughput={"bfq": 0.5}), "latency_ns_p99")
    verdict = judge(without(study, "latency_ns_p99", "bfq"))
    assert "finished trial" not in verdict.sentence
    assert verdict.sentence.startswith("By p99 latency nothing can be compared (too few")
    assert verdict.headline
    assert verdict.headline[0].metric != "latency_ns_p99"
    assert "is not known of both sides" in caveats(verdict)["metric_missing"]


def test_each_reason_for_comparing_nothing_has_its_words(canned):
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


def test_a_level_that_always_fails_is_named_and_promised_nothing(canned):
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


def test_without_a_complete_round_no_number_of_rounds_is_named(canned):
    failing = {"none": {1, 3}, "bfq": {2, 4}}
    verdict = judge(
        canned.make_study(rounds=4, is_failed=lambda t: t.round in failing[t.levels["scheduler"]])
    )
    only = verdict.headline[0]
    assert only.effect.ratio is None
    assert only.effect.further_rounds is None
    assert rounds_text(only.effect) == "no complete round to judge by"
    assert "more round" not in verdict.sentence


def test_levels_that_are_one_setting_are_not_told_apart_by_more_rounds(canned):
    study = canned.make_study(noise=0.4)
    knobs = {t.trial_id: {"scheduler": "none"} for t in study.trials}
    study = dataclasses.replace(study, knobs=knobs)
    verdict = judge(study)
    assert verdict.headline_word == "undecided"
    assert "Both are the same setting, so that no further round" in verdict.sentence
    assert not any("Measure on" in text for text, _ in answer(study, verdict, []).steps)
    told = caveats(judge(stopped_after(study, 12)))["unfinished"]
    assert "--resume" not in told
    assert "Leave one of bfq and none out, in a new study" in told


def test_after_ctrl_c_nobody_looks_for_failures(canned):
    verdict = judge(stopped_after(canned.make_study(), 12))
    told = caveats(verdict)
    assert verdict.trials.failed == 0
    assert "incomplete_rounds" in told
    assert not any("failed" in text for text in told.values())
    assert "Finish them: `iolab run DIR --resume`" in told["unfinished"]
    failed = caveats(judge(canned.make_study(is_failed=lambda t: t.ordinal == 0)))
    assert "failed" in failed["incomplete_rounds"]
    assert "--resume" not in failed["incomplete_rounds"]


def test_every_hint_has_a_verb_and_names_what_continues(canned):
    study = dataclasses.replace(canned.make_study().study, rounds_planned=3)
    assert rounds_hint(study, 5).endswith(": `iolab run DIR --resume --rounds 5`.")
    assert finish_hint(study).startswith("Finish them: `iolab run DIR --resume`")


def test_a_budget_that_is_too_small_is_named_with_one_that_is_enough(canned):
    """Trials of 20 s, a fifth more for those to come, in whole minutes."""
    data = canned.make_study()
    first = [
        dataclasses.replace(trial, elapsed_ns=20 * SECOND_NS)
        for trial in data.trials
        if trial.round == 1
    ]
    study = dataclasses.replace(data.study, rounds_planned=1, spec_toml='budget = "1m"')
    round_s = 20 * len(first)
    minutes = math.ceil((round_s + 1.2 * 4 * round_s) / 60)
    more = f"--resume --rounds 5 --budget {units.format_duration(minutes * 60 * SECOND_NS)}`."
    assert rounds_hint(study, 5, first).endswith(more)
    assert "--budget" not in finish_hint(study, first[:2])
    cut = [*first[:-1], dataclasses.replace(first[-1], status=None, elapsed_ns=None)]
    minutes = math.ceil((round_s - 20 + 1.2 * 20) / 60)
    assert f"--budget {units.format_duration(minutes * 60 * SECOND_NS)}`" in finish_hint(study, cut)
    rich = dataclasses.replace(study, spec_toml='budget = "1d"')
    assert rounds_hint(rich, 5, first).endswith("--rounds 5`.")


def test_few_rounds_that_are_all_equal_are_not_few(canned):
    """The plan's guess about wide intervals is gone once rounds were judged."""
    from iolab.study.checks import few_rounds

    note = few_rounds(3)
    assert note.message.startswith("only 3 complete rounds: where results vary")
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


def with_share(study, values):
    """The study with a share per trial, in turn."""
    base = [m for m in study.measurements if m.metric == "latency_ns_p99"]
    shares = [
        dataclasses.replace(m, metric="flowing_time_share", value=values[i % len(values)])
        for i, m in enumerate(base)
    ]
    return dataclasses.replace(study, measurements=[*study.measurements, *shares])


def test_point_15_no_share_is_above_100_percent(canned):
    """Seen: "time without stalls 49.5 % [0.467 %, 5 240 %]"."""
    assert geometric_interval([0.3, 0.9])[1] > 1
    verdict = judge(with_share(canned.make_study(rounds=3), [0.2, 0.95, 0.5]))
    found = [t for t in verdict.treatments if t.metric == "flowing_time_share"]
    assert found
    assert all(METRIC_BY_NAME[t.metric].highest == 1.0 for t in found)
    assert max(t.interval.high for t in found) == 1.0
    assert all(0 < t.interval.low <= t.geometric_mean * 1.001 for t in found)


def test_point_15_two_wide_rounds_have_no_useful_interval(canned):
    wide = judge(canned.make_study(rounds=2, noise=2.0, seed=5))
    assert "no useful interval from 2 rounds" in wide.sentence
    assert "95 % interval" not in wide.sentence
    narrow = judge(canned.make_study(rounds=2, noise=0.001, kind="simulated"))
    assert "95 % interval" in narrow.sentence


def test_point_15_which_mean_single_rounds_pull_is_said(canned):
    """Seen behind another sentence: "... is 0.61 times as fast; so it is in 1 more comparison."."""
    verdict = judge(canned.make_study(levels=("none", "bfq", "kyber"), throughput={"bfq": 0.5}))
    verdict = dataclasses.replace(
        verdict,
        pooled=[
            dataclasses.replace(c, kind="writes", robust_ratio=0.4) if c.is_headline else c
            for c in verdict.pooled
        ],
    )
    level = verdict.headline[0].level
    assert (
        f"In writes, a few rounds shift the mean of {level}. Its median round is 0.40 times as fast"
        f" as none. The same holds in {len(verdict.headline) - 1} more comparisons."
        in headline_sentence(verdict)
    )


def test_point_15_what_is_equal_in_all_classes_is_said_once(canned):
    verdict = judge(canned.make_study(noise=0.001))
    only = verdict.headline[0]
    assert only.word == "same"
    classes = [dataclasses.replace(only, kind=kind) for kind in ("writes", "reads")]
    said = headline_sentence(dataclasses.replace(verdict, pooled=classes))
    assert said.count("equally fast") == 1
    assert "bfq and none are equally fast in writes and in reads: any difference" in said
    assert "writes: 95 % interval " in said
    assert "reads: 95 % interval " in said


def test_point_16_percentiles_of_equal_rounds_say_why_they_have_an_interval(canned):
    """Seen: "the interval has no width" beside a p99 of [0.992, 1.008]."""
    study = canned.make_study(rounds=3, noise=0.0, throughput={"bfq": 2.0}, kind="simulated")
    said = caveats(judge(study))["rounds_by_seed"]
    assert "known to within a bucket of its histogram" in said
    assert "uncertain by 0.78 %" in said


def test_findings_of_several_operations_are_true_of_each(canned):
    """Seen: "page cache (4 times): 100 % of the bytes written ..." where two phases read."""
    study = canned.make_study(rounds=2)
    operations = sorted({m.operation for m in study.measurements})
    assert len(operations) > 1
    texts = {name: Caveat("libaio_buffered", f"{name} was slow", "") for name in operations}
    short = Caveat("short_phase", "the timed region lasted only 1.3 ms", "use a larger file")
    study = dataclasses.replace(
        study,
        measurements=[
            dataclasses.replace(m, caveats=(texts[m.operation], short)) for m in study.measurements
        ],
        phase_details=[
            {
                "trial_id": m.trial_id,
                "operation": m.operation,
                "nature": Nature(),
                "elapsed_ns": 2e6 + 1e5 * i,
            }
            for i, m in enumerate(study.measurements)
        ],
    )
    told = caveats(judge(study))
    for name in operations[:2]:
        assert f"{name}: {name} was slow" in told["libaio_buffered"].lower()
    first = study.measurements[0].operation
    assert f"the shortest, {first}, lasted 2.00 ms" in told["short_phase"]


def test_of_many_levels_the_strongest_is_named_and_the_rest_counted(canned):
    """Symptom: a sentence of 14 lines, with "(the upper number with 80 % chance)" six times."""
    levels = ("none", *(f"l{i}" for i in range(20)))
    faster = {f"l{i}": 1.5 + i / 100 if i < 10 else 1.05 for i in range(20)}
    study = canned.make_study(
        levels=levels,
        throughput=faster,
        noise=0.02,
        rounds=8,
        workloads=(canned.Workload("iozone", ("read",), ("4k",)),),
    )
    sentence = judge(study).sentence
    assert re.search(r"\d+ are undecided", sentence), sentence
    assert re.search(r"\d+ more better", sentence), sentence
    assert "80 % chance" not in sentence
    assert len(textwrap.wrap(sentence, 80)) <= 7, sentence


def test_rounds_that_are_equal_are_said_to_be_and_why(canned):
    """Symptom: "cfq is 20 % slower (20 to 20 %)"; why stood under --full only."""
    sentence = judge(canned.simulated()).sentence
    assert "cfq is 20 % slower (the same each time, as nothing here is random);" in sentence
    assert "cfq is 20 % slower (the same each time);" in sentence
    assert "20 to 20 %" not in sentence
    two = canned.make_study(throughput={"bfq": 0.8}, noise=0.0, kind="simulated")
    said = judge(two).sentence
    assert (
        "bfq is 20 % slower than none (the same each time, as nothing here is random; iozone,"
        " direct I/O, writes, 2 cells, 5 rounds)." in said
    )
    alike = judge(canned.make_study(noise=0.0, kind="simulated")).sentence
    assert "(iozone, direct I/O; writes: the same each time, as nothing here is random, 2" in alike


def test_a_measured_size_has_the_digits_that_tell_it_from_its_interval(canned):
    verdict = judge(canned.record_sizes())
    assert "256k is 6.45 times as fast (6.40 to 6.50 times)" in verdict.sentence
