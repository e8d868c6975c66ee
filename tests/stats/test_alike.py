"""Operations that are pooled, and those that are withheld: classes of cells, limits, failures,
single trials.
"""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType

import pytest

from iolab.stats.caveats_of_values import two_modes
from iolab.stats.judge import judge, word_of_classes
from iolab.stats.qualified import more_failures_p
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import Caveat, StudyData


def _told(verdict: StudyVerdict) -> dict[str, str]:
    return {c.kind: c.says for c in verdict.caveats}


def _one(canned: ModuleType, **changes: object) -> StudyData:
    return canned.make_study(
        workloads=(canned.Workload("iozone", ("read",), ("4k", "32k")),), **changes
    )


def test_one_cached_cell_makes_no_headline(canned: ModuleType) -> None:
    """One cached cell of four made "12 % faster" of three equal ones."""
    study = canned.make_study(noise=0.01)

    def bent(m):
        is_cached = m.operation == "read" and m.levels["record_size"] == "4k"
        if not is_cached:
            return m
        gain = 1.6 if m.levels["scheduler"] == "bfq" and "throughput" in m.metric else 1.0
        return dataclasses.replace(m, value=m.value * gain, cache_share=0.99)

    rows = [bent(m) for m in study.measurements]
    verdict = judge(dataclasses.replace(study, measurements=rows))
    assert [(c.kind, c.n_cells, c.effect.word) for c in verdict.headline] == [
        ("writes", 2, "same"),
        ("reads", 1, "same"),
    ]
    assert [(c.kind, c.effect.word) for c in verdict.pooled if not c.is_headline] == [
        ("memory", "better")
    ]


def test_percentiles_of_different_streams_are_never_averaged(canned: ModuleType) -> None:
    workload = canned.Workload("mix", ("mix/reader", "mix/writer"))
    verdict = judge(canned.make_study(workloads=(workload,), latency={"bfq": 3.0}))
    tails = [c for c in verdict.secondary if c.metric == "latency_ns_p99"]
    assert [(c.kind, c.n_cells) for c in tails] == [("stream reader", 1), ("stream writer", 1)]
    assert [c.kind for c in verdict.headline] == [""]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["same"], "same"),
        (["better", "better"], "better"),
        (["better", "worse"], "depends"),
        (["better", "same"], "depends"),
        (["better", "undecided"], "undecided"),
        (["same", "trivial"], "same"),
        (["same", "depends"], "depends"),
    ],
)
def test_the_word_of_a_level_is_that_of_its_classes(words, word) -> None:
    assert word_of_classes(words) == word


@pytest.mark.parametrize("limit", ["generator", "cache", "rate"])
def test_what_was_limited_never_shows_same(canned: ModuleType, limit: str) -> None:
    changes = {"cache": {"cache_share": 0.95}, "generator": {}, "rate": {}}[limit]
    if limit == "generator":
        changes = {"caveats": lambda _: (Caveat("generator_bound", "limit"),)}
    study = _one(canned, noise=0.01, **changes)
    if limit == "rate":
        first = [m for m in study.measurements if m.metric == "throughput_bytes_per_s"]
        kept = [dataclasses.replace(m, metric="on_time_share", value=1.0) for m in first]
        study = dataclasses.replace(study, measurements=[*study.measurements, *kept])
    verdict = judge(study)
    assert verdict.headline_word == "undecided"
    effect = verdict.headline[0].effect
    assert "was the limit" in effect.reason
    assert effect.further_rounds is None, "no number of rounds would change it"
    assert "was the limit" in verdict.sentence
    assert judge(_one(canned, noise=0.01)).headline_word in ("same", "trivial")


def test_a_level_that_always_fails_at_one_size_is_no_winner(canned: ModuleType) -> None:
    def fails(trial) -> bool:
        return trial.levels["scheduler"] == "bfq" and trial.levels["record_size"] == "32k"

    study = _one(canned, throughput={"bfq": 1.4}, is_failed=fails)
    verdict = judge(study)
    (headline,) = verdict.headline
    assert headline.effect.word == "undecided"
    assert headline.failures is not None
    assert headline.failures.is_level_barred
    assert (headline.failures.level_failed, headline.failures.level_trials) == (5, 10)
    assert (
        "Trials that failed: none 0 of 10, bfq 5 of 10; counted as the worst, bfq is ahead in"
        in (verdict.sentence)
    )
    assert all("bfq" not in (*b.members, *b.candidates) for b in verdict.best_levels)


def test_a_baseline_that_fails_makes_no_level_worse(canned: ModuleType) -> None:
    study = _one(
        canned,
        throughput={"bfq": 0.7},
        is_failed=lambda t: t.levels["scheduler"] == "none" and t.round == 1,
    )
    (headline,) = judge(study).headline
    assert headline.effect.word == "undecided"
    assert "of the baseline 2 of 10 trials failed" in headline.effect.reason


def test_more_failures_are_fishers() -> None:
    """The tea: 4 of 4 against 0 of 4 is 1/70."""
    assert more_failures_p((4, 4), (0, 4)) == pytest.approx(1 / 70)
    assert more_failures_p((0, 4), (4, 4)) == pytest.approx(1)


def test_an_outlier_is_named_with_its_conditions(canned: ModuleType) -> None:
    study = _one(canned, rounds=8)
    rows = [
        dataclasses.replace(m, value=m.value / 3)
        if m.trial_id == "t7" and m.metric == "throughput_bytes_per_s"
        else m
        for m in study.measurements
    ]
    verdict = judge(dataclasses.replace(study, measurements=rows))
    trial = study.trials[7]
    said = _told(verdict)["outliers"]
    assert "trial t7 (" in said
    assert f"round {trial.round}, place {trial.position + 1} in it" in said
    (headline,) = verdict.headline
    assert headline.robust_ratio is not None
    assert "Its median round is" in verdict.sentence
    assert "outliers" not in _told(judge(study))


def test_two_modes_are_found_and_one_is_not() -> None:
    low, high = [0.0, 0.01, -0.01, 0.005], [0.2, 0.21, 0.19, 0.205]
    assert two_modes([*low, *high], 0.05) == pytest.approx(0.2, abs=0.01)
    assert two_modes([x / 10 for x in range(10)], 0.05) is None
    assert two_modes(low, 0.05) is None
    assert two_modes([*low, *low, math.log(1.5)], 0.05) is None, "one is an outlier, no mode"


def test_percentiles_that_hide_a_stall_say_so(canned: ModuleType) -> None:
    study = _one(canned)
    slow = [
        dataclasses.replace(m, value=m.value * 1000) if m.metric == "latency_ns_max" else m
        for m in study.measurements
    ]
    told = _told(judge(dataclasses.replace(study, measurements=slow)))
    assert "A stall is therefore one slow operation among many" in told["closed_loop"]
    assert "longest" in told["closed_loop"]
    assert "closed_loop" not in _told(judge(study))


def test_no_trade_off_is_cut_without_a_word(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(throughput={"bfq": 0.8}, latency={"bfq": 0.2}))
    assert len(verdict.trade_offs) == 2
    assert verdict.sentence.endswith("And 1 more, below.")


def test_an_average_that_hides_cells_says_so(canned: ModuleType) -> None:
    study = canned.make_study(
        workloads=(canned.Workload("iozone", ("read",), ("4k", "8k", "16k", "32k")),),
        rounds=8,
        noise=0.05,
    )
    (headline,) = judge(study).headline
    assert headline.effect.word == "same"
    assert headline.is_on_average
    assert "on average over cells (single cells may differ)" in judge(study).sentence
