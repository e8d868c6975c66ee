"""Judging canned studies: pairing, words, labels, caveats, sentences, properties."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.errors import AnalysisError
from iolab.stats.judge import headline_word, judge
from iolab.stats.ledger import level_text
from iolab.stats.metrics import METRIC_BY_NAME, METRICS
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.equal_levels import find_equal_file_systems
from iolab.store.rows import Caveat, Measurement, StudyData


def _of(verdict: StudyVerdict, kind: str) -> Comparison:
    """Return the only comparison of a class of cells."""
    (found,) = [c for c in verdict.headline if c.kind == kind]
    return found


def _codes(verdict: StudyVerdict) -> dict[str, int]:
    return {caveat.kind: caveat.count for caveat in verdict.caveats}


def test_worse_level_is_found_with_its_trade_off(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(throughput={"bfq": 0.88}, latency={"bfq": 0.25}))
    assert [c.kind for c in verdict.headline] == ["writes", "reads"]
    for headline in verdict.headline:
        assert verdict.headline_word == headline.effect.word == "worse"
        assert headline.effect.ratio == pytest.approx(0.88, rel=0.02)
        assert (headline.rounds_used, headline.trials_used, headline.n_cells) == (5, 20, 2)
    assert "bfq is 1" in verdict.sentence
    assert "slower than none (95 % interval " in verdict.sentence
    assert "p99 latency is 0.2" in verdict.trade_offs[0]
    assert "gives 0.88 times the throughput" in verdict.sentence  # One form in one sentence.


def test_identical_levels_are_the_same(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(noise=0.01))
    assert verdict.headline_word == "same"
    assert verdict.sentence.startswith(
        "bfq and none are equally fast in writes and in reads: any difference is below 5 %"
    )


def test_noise_is_undecided_with_rounds_to_go(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(noise=0.4, rounds=5))
    effect = verdict.headline[0].effect
    assert effect.word == "undecided"
    assert "further round" in verdict.sentence
    assert effect.further_rounds is not None or effect.is_further_rounds_above_limit


@pytest.mark.parametrize("rounds", [0, 1])
def test_too_few_rounds_do_not_crash(canned: ModuleType, rounds: int) -> None:
    verdict = judge(canned.make_study(rounds=rounds))
    assert verdict.headline_word == "undecided"
    begin = "Writes: undecided" if rounds else "Nothing is compared"
    assert verdict.sentence.startswith(begin)
    assert all(c.effect.interval_95 is None for c in verdict.pooled)


def test_only_baseline_measured(canned: ModuleType) -> None:
    study = canned.make_study(is_failed=lambda t: t.levels["scheduler"] == "bfq")
    verdict = judge(study)
    assert verdict.headline_word == "undecided"
    assert verdict.trials.failed == 10
    assert verdict.treatments


def test_incomplete_round_is_left_out_and_counted(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(is_failed=lambda t: t.ordinal == 0))
    headline = _of(verdict, "writes")
    assert (headline.rounds_used, headline.rounds_excluded) == (4, 1)
    assert (headline.trials_used, headline.trials_excluded) == (16, 4)
    assert _codes(verdict)["failed_trials"] == 1
    assert "incomplete_rounds" in _codes(verdict)


def test_cell_that_one_side_cannot_do_is_left_out(canned: ModuleType) -> None:
    verdict = judge(
        canned.make_study(
            is_failed=lambda t: t.levels == {"record_size": "32k", "scheduler": "bfq"}
        )
    )
    headline = _of(verdict, "writes")
    assert (headline.n_cells, headline.cells_excluded, headline.rounds_used) == (1, 1, 5)
    assert _codes(verdict)["cells_excluded"] == 1


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf, -1.0])
def test_bad_values_are_rejected_and_counted(canned: ModuleType, bad: float) -> None:
    study = canned.make_study()
    spoilt = [
        dataclasses.replace(m, value=bad) if m.trial_id == "t0" else m for m in study.measurements
    ]
    verdict = judge(dataclasses.replace(study, measurements=spoilt))
    assert verdict.headline[0].rounds_used == 4
    assert _codes(verdict)["value_rejected"] == 12
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_measurements_of_trials_that_failed_do_not_count(canned: ModuleType) -> None:
    study = canned.make_study()
    trials = [
        dataclasses.replace(t, status="interrupted") if t.ordinal == 0 else t for t in study.trials
    ]
    assert judge(dataclasses.replace(study, trials=trials)).headline[0].rounds_used == 4


def test_buffered_and_direct_are_never_pooled(canned: ModuleType) -> None:
    workload = canned.Workload("iozone", ("read",), ("4k",), buffered_operations=("fwrite",))
    verdict = judge(canned.make_study(workloads=(workload,)))
    assert [(c.is_direct, c.is_headline) for c in verdict.pooled] == [(True, True), (False, False)]
    assert all(c.n_cells == 1 for c in verdict.pooled)
    assert [c.is_page_cache for c in verdict.cells] == [False, True]


def test_page_cache_is_said_in_the_sentence(canned: ModuleType) -> None:
    verdict = judge(canned.make_study(cache_share=0.9))
    assert "All cells are page cache" in verdict.sentence
    assert all(t.is_page_cache for t in verdict.treatments)
    assert judge(canned.make_study(cache_share=None)).cells[0].cache_share is None


def test_one_level_in_the_page_cache_is_not_the_whole_cell(canned: ModuleType) -> None:
    """Symptom: all cells were said to be page cache, although one level of each was durable."""
    study = canned.make_study(cache_share=0.9)
    durable = [
        dataclasses.replace(m, cache_share=0.0) if m.levels["scheduler"] == "bfq" else m
        for m in study.measurements
    ]
    verdict = judge(dataclasses.replace(study, measurements=durable))
    assert "All cells have a level that is page cache" in verdict.sentence
    assert "are page cache" not in verdict.sentence
    (caveat,) = [c for c in verdict.caveats if c.kind == "page_cache"]
    assert "that level measures memory" in caveat.says


def test_cells_that_the_factor_cannot_affect_are_shown_and_not_pooled(canned: ModuleType) -> None:
    """The study's text says what its operations are; without it nothing is known of them."""
    workload = canned.Workload("iozone", ("write", "fwrite", "pread"), ("4k",))
    study = canned.make_study(
        compared="engine",
        levels=("psync", "sync"),
        workloads=(workload,),
        throughput={"sync": 0.5},
    )
    assert sum(c.n_cells for c in judge(study).pooled) == 3
    spec = (
        'testbed = "dir:/x"\n[factors]\nengine = ["psync", "sync"]\nrecord_size = ["4k", "8k"]\n'
        '[[workloads]]\nkind = "iozone"\ntests = ["write", "fwrite", "pread"]\n'
    )
    row = dataclasses.replace(study.study, spec_toml=spec)
    verdict = judge(dataclasses.replace(study, study=row))
    (headline,) = verdict.headline
    assert headline.n_cells == 1
    assert {c.operation: c.is_affected for c in verdict.cells} == {
        "write": True,
        "fwrite": False,
        "pread": False,
    }
    (fwrite,) = [c for c in verdict.cells if c.operation == "fwrite"]
    assert fwrite.label.endswith("not affected by engine")
    assert all(c.n_cells == 1 for c in verdict.secondary)
    assert [c.kind for c in judge(canned.make_study(workloads=(workload,))).pooled] == [
        "writes",
        "reads",
        "memory",
    ]


def test_cells_that_the_study_file_calls_inert_are_in_no_family(canned: ModuleType) -> None:
    workload = canned.Workload("iozone", ("write", "read"), ("4k",))
    study = canned.make_study(
        compared="durability",
        levels=("none", "sync"),
        workloads=(workload,),
        throughput={"sync": 0.5},
    )
    spec = """
name = "durable"
testbed = "loop:1g"
rounds = 5
compare = "durability"
[factors]
durability = ["none", "sync"]
record_size = ["4k", "8k"]
[[workloads]]
name = "iozone"
kind = "iozone"
tests = "{tests}"
settings = {{ direct = {direct} }}
"""

    def judged(tests: str, direct: str) -> StudyVerdict:
        row = dataclasses.replace(study.study, spec_toml=spec.format(tests=tests, direct=direct))
        return judge(dataclasses.replace(study, study=row))

    verdict = judged("write,read", "true")
    assert verdict.headline[0].n_cells == 1
    cells = {c.operation: c for c in verdict.cells}
    assert not cells["read"].is_affected
    assert cells["read"].effect.p_adjusted is None
    assert cells["read"].effect.word == "undecided", "a difference there is no finding"
    write = cells["write"].effect
    assert write.p_adjusted == write.p, "a family of one"
    whole = ["writes", "reads"]
    buffered = [c.kind for c in judged("write,read", "false").headline]
    assert buffered == whole, "blocks may lie elsewhere"
    assert [c.kind for c in judge(study).headline] == whole, "without a file nothing is known"


def test_where_the_factor_cannot_matter_stands_beside_the_answer(canned: ModuleType) -> None:
    study = canned.make_study()
    notes = [
        Caveat("factor_without_effect", f"{name} has no effect on a part of the study (read): why")
        for name in ("scheduler", "cache")
    ]
    sentence = judge(dataclasses.replace(study, caveats=tuple(notes))).sentence
    assert sentence.endswith(
        "Mind that scheduler has no effect on a part of the study (read): why."
    )
    assert "cache" not in sentence


def test_the_only_configuration_says_which_way_its_bytes_went(canned: ModuleType) -> None:
    workload = canned.Workload("iozone", ("write", "read"), ("4k",), ("fwrite",))
    study = canned.make_study(workloads=(workload,), levels=("none",))
    row = dataclasses.replace(
        study.study, factors={"scheduler": ["none"]}, settings={"verify": "full"}
    )
    sentence = judge(dataclasses.replace(study, study=row)).sentence
    assert "direct: write " in sentence
    assert "; through the page cache: fwrite " in sentence
    assert "(with full verification)" in sentence
    warm = [dataclasses.replace(m, is_direct=False, cache_share=0.1) for m in study.measurements]
    buffered = dataclasses.replace(study, study=row, measurements=warm)
    assert "(scheduler = none): buffered: write " in judge(buffered).sentence


def test_a_cache_that_is_compared_is_no_mistake(canned: ModuleType) -> None:
    """Symptom: nothing was said to reach the device, although every cold level did."""
    verdict = judge(canned.make_study(compared="cache", levels=("cold", "warm"), cache_share=0.9))
    assert "compare memory" not in verdict.sentence
    assert "All cells have a level that is page cache" in verdict.sentence
    (caveat,) = [c for c in verdict.caveats if c.kind == "page_cache"]
    assert "cache decides that" in caveat.says
    assert "never reached" not in caveat.says


def test_what_is_unfinished_is_finished_by_the_same_command(canned: ModuleType) -> None:
    """Symptom: `iolab run study.toml` was named, also for a study that flags had described."""
    study = canned.make_study()
    trials = [dataclasses.replace(t, status=None) if t.round == 5 else t for t in study.trials]
    verdict = judge(dataclasses.replace(study, trials=trials))
    (caveat,) = [c for c in verdict.caveats if c.kind == "unfinished"]
    assert "study.toml" not in caveat.hint
    assert "--resume" in caveat.hint


def test_a_factor_keeps_the_name_that_people_type() -> None:
    assert level_text("mq-deadline.fifo_batch", "4") == "mq-deadline.fifo_batch 4"


def test_generator_bound_is_said_in_the_sentence(canned: ModuleType) -> None:
    caveat = (Caveat("generator_bound", "limit"),)
    verdict = judge(
        canned.make_study(caveats=lambda t: caveat if t.levels["record_size"] == "4k" else ())
    )
    assert "In 1 of 2 cells much of the time was the load generator's own" in verdict.sentence
    assert verdict.headline_word == "undecided", "a limit cannot show that levels are the same"
    assert "the load generator was the limit, so that a difference" in verdict.sentence


def test_comparing_direct_with_buffered_is_a_comparison(canned: ModuleType) -> None:
    study = canned.make_study(compared="direct", levels=("true", "false"))
    mixed = [
        dataclasses.replace(m, is_direct=m.levels["direct"] == "true") for m in study.measurements
    ]
    verdict = judge(dataclasses.replace(study, measurements=mixed))
    assert [c.kind for c in verdict.pooled] == ["writes", "reads"]
    assert verdict.pooled[0].rounds_used == 5


def test_position_effect_becomes_a_caveat(canned: ModuleType) -> None:
    assert "position_effect" in _codes(judge(canned.make_study(place=0.3)))
    assert "position_effect" not in _codes(judge(canned.make_study()))


def test_nested_factor_does_not_split_cells(canned: ModuleType) -> None:
    study = canned.make_study()

    def nest(levels: dict[str, str]) -> dict[str, str]:
        return levels | ({"bfq.low_latency": "0"} if levels["scheduler"] == "bfq" else {})

    verdict = judge(
        dataclasses.replace(
            study,
            trials=[dataclasses.replace(t, levels=nest(t.levels)) for t in study.trials],
            measurements=[
                dataclasses.replace(m, levels=nest(m.levels)) for m in study.measurements
            ],
        )
    )
    assert verdict.headline[0].rounds_used == 5
    assert "nested_factor" in _codes(verdict)


def test_numeric_factor_gets_its_plateau(canned: ModuleType) -> None:
    verdict = judge(canned.record_sizes())
    (best,) = verdict.best_levels
    assert (best.plateau, best.members) == ("64k", ("64k", "128k", "256k"))
    assert best.is_flat_beyond
    assert best.plateau_interval is not None
    assert 0.95 < best.plateau_interval.low < best.plateau_interval.high < 1.01
    assert "From record_size 64k on nothing changes by more than 5 %" in verdict.sentence
    assert not verdict.trade_offs


def test_published_report_d2(canned: ModuleType) -> None:
    """D2's numbers: deadline equals noop; cfq writes slower, of reads three runs settle nothing."""
    verdict = judge(canned.published_d2())
    words = {(c.kind, c.level): c.effect for c in verdict.headline}
    assert words["writes", "deadline"].word == "same"
    assert (words["writes", "cfq"].word, words["writes", "cfq"].sign) == ("worse", "worse")
    assert words["reads", "cfq"].word == "undecided"
    noop = next(
        t
        for t in verdict.treatments
        if (t.level, t.operation, t.cell_label) == ("noop", "initial-write", "4k")
    )
    values = (20247.65, 19768.67, 20169.63)
    assert noop.geometric_mean == pytest.approx(math.prod(v * 1024 for v in values) ** (1 / 3))


def test_first_workload_carries_the_headline(canned: ModuleType) -> None:
    verdict = judge(canned.demo())
    assert {c.workload for c in verdict.headline} == {"iozone"}
    assert [(c.kind, c.level) for c in verdict.headline] == [
        ("writes", "mq-deadline"),
        ("writes", "bfq"),
        ("reads", "mq-deadline"),
        ("reads", "bfq"),
    ]


def test_several_levels_that_depend_are_told_in_whole_clauses(canned: ModuleType) -> None:
    """Symptom: "it depends for bfq compared with none is about the same in ..."."""
    workload = canned.Workload("mix", ("mix/reader", "mix/writer"))
    study = canned.make_study(levels=("none", "kyber", "bfq"), workloads=(workload,), noise=0.01)
    bent = [
        dataclasses.replace(m, value=m.value * (1.5 if m.operation == "mix/reader" else 0.6))
        if m.levels["scheduler"] == "bfq" and m.metric == "throughput_bytes_per_s"
        else m
        for m in study.measurements
    ]
    sentence = judge(dataclasses.replace(study, measurements=bent)).sentence
    assert "it depends for bfq: 49 % faster in mix/reader, 40 % slower in mix/writer" in sentence


def test_mixed_workload_operations_and_disagreement(canned: ModuleType) -> None:
    workload = canned.Workload("mix", ("mix/reader", "mix/writer"))
    study = canned.make_study(workloads=(workload,), noise=0.01)
    bent = [
        dataclasses.replace(m, value=m.value * (1.5 if m.operation == "mix/reader" else 0.6))
        if m.levels["scheduler"] == "bfq" and m.metric == "throughput_bytes_per_s"
        else m
        for m in study.measurements
    ]
    verdict = judge(dataclasses.replace(study, measurements=bent))
    assert verdict.headline_word == "depends"
    assert [(p.label, p.direction) for p in verdict.headline[0].parts] == [
        ("mix/reader", "better"),
        ("mix/writer", "worse"),
    ]
    assert "It depends: bfq compared with none is 50 % faster in mix/reader, 40 % slower in" in (
        verdict.sentence
    )


def test_latency_can_be_the_primary_metric(canned: ModuleType) -> None:
    study = canned.make_study(latency={"bfq": 2.5})
    only = [m for m in study.measurements if m.metric == "latency_ns_p50"]
    verdict = judge(dataclasses.replace(study, measurements=only))
    assert verdict.headline_word == "worse"
    assert "The median latency of bfq is 2.5 times as high as that of none" in verdict.sentence


def test_margin_of_zero_is_an_analysis_error(canned: ModuleType) -> None:
    with pytest.raises(AnalysisError, match="margin"):
        judge(canned.make_study(margin=0.0))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["worse", "better"], "better"),
        (["worse", "undecided", "same"], "undecided"),
        (["worse", "same"], "same"),
        (["worse", "trivial"], "trivial"),
        (["worse"], "worse"),
        ([], "undecided"),
    ],
)
def test_headline_word(words: list[str], expected: str) -> None:
    assert headline_word(words) == expected  # type: ignore[arg-type]


def test_unknown_metric_is_a_caveat(canned: ModuleType) -> None:
    study = canned.make_study()
    odd = dataclasses.replace(study.measurements[0], metric="joules")
    verdict = judge(dataclasses.replace(study, measurements=[*study.measurements, odd]))
    assert "unknown_metric" in _codes(verdict)


def _swap(study: StudyData, baseline: str) -> StudyData:
    return dataclasses.replace(study, study=dataclasses.replace(study.study, baseline=baseline))


@settings(max_examples=25, deadline=None)
@given(st.floats(0.7, 1.4), st.floats(0.001, 0.2), st.integers(1, 6), st.integers(0, 10_000))
def test_swapping_the_baseline_mirrors_everything(
    canned: ModuleType, effect: float, noise: float, rounds: int, seed: int
) -> None:
    study = canned.make_study(throughput={"bfq": effect}, noise=noise, rounds=rounds, seed=seed)
    one, other = judge(study), judge(_swap(study, "bfq"))
    mirror = {"better": "worse", "worse": "better"}
    for a, b in zip(
        [*one.pooled, *one.secondary, *one.cells],
        [*other.pooled, *other.secondary, *other.cells],
        strict=True,
    ):
        assert a.effect.ratio is not None
        assert b.effect.ratio == pytest.approx(1 / a.effect.ratio, rel=1e-12)
        assert b.effect.word == mirror.get(a.effect.word, a.effect.word)
        assert b.effect.further_rounds == a.effect.further_rounds


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([2.0**-20, 0.5, 8.0, 1024.0]), st.integers(0, 10_000))
def test_scaling_all_values_changes_no_ratio(canned: ModuleType, scale: float, seed: int) -> None:
    study = canned.make_study(throughput={"bfq": 0.93}, noise=0.05, seed=seed)
    scaled = dataclasses.replace(
        study,
        measurements=[dataclasses.replace(m, value=m.value * scale) for m in study.measurements],
    )
    one, other = judge(study), judge(scaled)
    assert [c.effect for c in one.pooled] == [c.effect for c in other.pooled]
    assert [c.effect for c in one.cells] == [c.effect for c in other.cells]


def test_order_of_rows_does_not_matter(canned: ModuleType) -> None:
    study = canned.demo()
    turned = dataclasses.replace(study, trials=study.trials[::-1])
    assert judge(study).to_dict() == judge(turned).to_dict()


CPU_SHARES = {"cpu_user_share", "cpu_system_share"}
AMPLIFIED = {"store_write_amplification", "device_write_amplification"}
VOLUMES = {"block_read_bytes", "block_write_bytes", "block_requests", "extents_per_file"}
"""Metrics of work of the device, and of places on it: less is better, though no time."""


def test_metrics_are_listed_once_with_unit_in_the_name() -> None:
    assert len(METRIC_BY_NAME) == len(METRICS)
    for metric in METRICS:
        units = {"bytes/s": "bytes_per_s", "ops/s": "ops_per_s", "ns": "_ns"}
        units |= {"share": "_share", "index": "fairness_", "bytes": "_bytes"}
        assert units.get(metric.unit, "") in metric.name
        is_lower_better = metric.unit == "ns" or metric.name in {*VOLUMES, *CPU_SHARES, *AMPLIFIED}
        assert metric.is_higher_better != is_lower_better
        assert metric.format(1234567.0)


def test_scipy_is_loaded_by_judging_only() -> None:
    """`iolab --help` may import these modules and must not pay for scipy (methodology 3.6)."""
    code = (
        "import sys, iolab.stats.judge, iolab.report, iolab.report.terminal, iolab.stats.methods;"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'numpy', 'xlsxwriter')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_mixed_workload_is_judged_by_its_total_not_by_total_and_parts(
    canned: ModuleType,
) -> None:
    """Pooling streams and their sum called a phase slower that had moved 29 % more bytes."""
    per_level = {
        "none": {"mix/reader": 100.0, "mix/bulk": 100.0, "mix/all": 200.0},
        "bfq": {"mix/reader": 10.0, "mix/bulk": 248.0, "mix/all": 258.0},
    }
    mix = canned.Workload("mix", ("x",), ())
    base = canned.make_study(levels=("none", "bfq"), rounds=6, workloads=(mix,), facts={})
    measurements = [
        Measurement(
            trial_id=trial.trial_id,
            ordinal=trial.ordinal,
            round=trial.round,
            position=trial.position,
            workload="mix",
            levels=trial.levels,
            operation=operation,
            metric="throughput_bytes_per_s",
            value=value * (1 + 0.001 * trial.ordinal),
            is_direct=True,
            cache_share=None,
        )
        for trial in base.trials
        for operation, value in per_level[trial.levels["scheduler"]].items()
    ]
    verdict = judge(dataclasses.replace(base, measurements=measurements, series=[]))
    (pooled,) = verdict.pooled
    assert pooled.effect.ratio == pytest.approx(1.29, rel=0.01)
    assert len({cell.operation for cell in verdict.cells}) == 3, "the streams stay as cells"


def test_levels_that_were_one_setting_are_a_caveat(canned: ModuleType) -> None:
    study = canned.make_study(rounds=5)
    knobs: dict[str, dict[str, str]] = {t.trial_id: {"scheduler": "none"} for t in study.trials}
    assert "equal_levels" not in _codes(judge(study))
    assert _codes(judge(dataclasses.replace(study, knobs=knobs)))["equal_levels"] == 1


def test_issue_14_point_6_options_for_mkfs_that_made_the_same_file_system_are_a_caveat(
    canned: ModuleType,
) -> None:
    """A newcomer compared ``-b 1025`` with ``-b 1024``; nothing said that mke2fs had rounded.

    What a level leads to is read back after mkfs (dumpe2fs, xfs_db, btrfs). Where it agrees, a
    caveat says so; a record of an older agent has no parameters and says nothing.
    """
    study = canned.make_study(rounds=5)
    trials = [
        dataclasses.replace(t, levels={**t.levels, "mkfs_options": f"-b {t.levels['scheduler']}"})
        for t in study.trials
    ]
    levels = {t.trial_id: t.levels["scheduler"] for t in trials}
    for parameters, expected in (
        ({key: ["Block size: 1024", "Inode size: 256"] for key in levels}, 1),
        ({trial: [f"Block size: {level}"] for trial, level in levels.items()}, 0),
        ({key: list[str]() for key in levels}, 0),
    ):
        changed = dataclasses.replace(study, trials=trials, file_systems=parameters)
        assert _codes(judge(changed)).get("equal_levels", 0) == expected
    equal = find_equal_file_systems([({"mkfs_options": f"-b {b}"}, ["x"]) for b in (1024, 1025)])
    assert [it.message for it in equal] == [
        "mkfs_options -b 1024 and -b 1025 are the same setting: the file systems have the same "
        "parameters"
    ]
