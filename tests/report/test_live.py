"""The state of a study that runs: counts, values by round, intervals that close, caveats."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from iolab.report.live import (
    BLOCKS,
    SPARK_MAX,
    LevelLine,
    blocks,
    live_state,
    live_text,
    ratio_text,
)
from iolab.stats.judge import judge
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.store.rows import Caveat, StudyData


def after(data: StudyData, n: int) -> StudyData:
    """The study when `n` trials have ended; the others are planned."""
    ended = {trial.trial_id for trial in data.trials[:n]}
    trials = [
        trial if trial.trial_id in ended else replace(trial, status=None, elapsed_ns=None)
        for trial in data.trials
    ]
    measurements = [m for m in data.measurements if m.trial_id in ended]
    return StudyData(study=data.study, trials=trials, measurements=measurements)


def test_a_study_is_seen_to_go_on(canned: ModuleType) -> None:
    whole = canned.make_study()
    n = len(whole.trials)
    rounds = len({trial.round for trial in whole.trials})
    half = after(whole, n // 2)
    state = live_state(half, judge(half), is_running=True)
    assert (state.status, state.n_done, state.n_planned) == ("running", n // 2, n)
    assert (state.rounds_done, state.rounds_planned) == (rounds // 2, rounds)
    assert state.share_done == 0.5
    assert whole.trials[n // 2].trial_id in state.upcoming
    text = live_text(state)
    assert f"{n // 2} of {n} trials, {rounds // 2} of {rounds} complete rounds" in text
    assert "Do not stop by what you see" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    end = live_state(whole, judge(whole), is_running=False)
    assert (end.status, end.share_done, end.upcoming, end.left_ns) == ("finished", 1.0, "", None)
    assert live_state(half, judge(half), is_running=False).status == "stopped"


def test_the_lines_are_those_of_the_verdict(canned: ModuleType) -> None:
    data = canned.make_study()
    verdict = judge(data)
    state = live_state(data, verdict, is_running=False)
    assert [line.level for line in state.levels] == data.study.factors["scheduler"]
    rounds = len({trial.round for trial in data.trials})
    for line in state.levels:
        assert len(line.values) == min(rounds, SPARK_MAX)
        assert set(line.values) <= set(BLOCKS)
    for comparison in reversed(verdict.headline):  # The first of a level counts.
        (line,) = [one for one in state.levels if one.level == comparison.level]
        interval = comparison.effect.interval_95
        assert interval is not None
        if line.ratio == comparison.effect.ratio:
            assert line.word == comparison.word
            assert line.interval == (interval.low, interval.high)
            assert len(line.closing) == min(SPARK_MAX, comparison.rounds_used - 1)
    assert state.levels[0].ratio is None


def test_values_are_of_the_part_that_is_judged(canned: ModuleType) -> None:
    """A mean over all streams stood beside the ratio of one: 8.9 times here, 79 times there."""
    metric = METRIC_BY_NAME["latency_ns_p50"]
    data = canned.make_study(noise=0.3)
    data = replace(data, study=replace(data.study, metric=metric.name, metric_of="read"))
    state = live_state(data, judge(data), is_running=False)
    assert state.part == "iozone, reads"
    assert "iozone, reads: median latency by round" in live_text(state)
    means = dict[str, float]()
    for line in state.levels:
        logs = [
            math.log(m.value)
            for m in data.measurements
            if (m.metric, m.operation) == (metric.name, "read")
            and m.levels["scheduler"] == line.level
        ]
        means[line.level] = math.exp(math.fsum(logs) / len(logs))
        assert line.value == metric.format(means[line.level])
        if line.ratio is not None:
            assert line.ratio == pytest.approx(means[data.study.baseline] / means[line.level])


def test_caveats_have_the_numbers_of_the_report(canned: ModuleType) -> None:
    """The newest trial's share stood here, the first one's in the report."""
    data = canned.make_study(
        caveats=lambda trial: (Caveat("cpu_steal", f"the host took {trial.ordinal + 3} %", ""),)
    )
    verdict = judge(data)
    (told,) = [f.says.rstrip(".") for f in verdict.caveats if f.kind == "cpu_steal"]
    state = live_state(data, verdict, is_running=False)
    assert f"{told} ({len(data.trials)} trials)" in state.caveats


def test_an_interrupted_trial_is_neither_done_nor_failed(canned: ModuleType) -> None:
    """After Ctrl-C a view said 62 %, and that one trial of 8 had failed: 4 were done, none had."""
    half = after(canned.make_study(), 4)
    trials = list(half.trials)
    trials[4] = replace(trials[4], status="interrupted", error="stopped")
    place = Path("/tmp/my study")
    data = replace(half, trials=trials)
    state = live_state(data, None, is_running=False, directory=place)
    assert (state.status, state.n_done, state.n_failed) == ("stopped", 4, 0)
    assert state.share_done == 4 / len(trials)
    text = " ".join(live_text(state).split())
    assert "failed" not in text
    assert "`iolab run '/tmp/my study' --resume` continues it" in text
    assert state.upcoming.startswith(trials[4].trial_id)


def test_a_ratio_has_the_ends_of_its_interval() -> None:
    """An interval of 7.0 to 18 was told as "11.306 times ±62 %"."""
    line = LevelLine("64k", "", "", "", "", 11.306, (7.01, 18.23), 5, word="better")
    assert ratio_text(line) == "11.3 times (7.010 to 18.2): better"
    assert ratio_text(replace(line, interval=(11.306, 11.306))).startswith("11.3 times, no spread")
    few = replace(line, interval=(0.01, 9999.0), n_rounds=2)
    assert ratio_text(few) == "11.3 times, no useful interval from 2 rounds: better"


def test_nothing_yet(canned: ModuleType) -> None:
    state = live_state(after(canned.make_study(), 0), None, is_running=True)
    assert state.levels == ()
    assert state.left_ns is None
    assert "No trial is finished yet." in live_text(state)


def test_failures_and_new_caveats_come_first(canned: ModuleType) -> None:
    data = canned.make_study()
    trials = list(data.trials)
    trials[3] = replace(trials[3], caveats=(Caveat("hot", "the device was hot", ""),))
    trials[5] = replace(trials[5], status="failed", error="ENOSPC")
    trials[7] = replace(trials[7], caveats=(Caveat("busy", "the machine was busy", ""),))
    state = live_state(replace(data, trials=trials), None, is_running=True)
    assert state.caveats[:3] == (
        "failed: ENOSPC (1 trial)",
        "the machine was busy (1 trial)",
        "the device was hot (1 trial)",
    )
    assert state.caveats[3] == data.caveats[0].message
    assert state.n_failed == 1


def test_blocks_are_in_proportion_from_zero() -> None:
    assert blocks([0, 1, 2, 4], 4) == "▁▃▅█"
    assert blocks([], 1) == ""
    assert blocks([0.0, 0.0], 0.0) == "▁▁"
    assert len(blocks(list(range(100)), 99)) == SPARK_MAX
