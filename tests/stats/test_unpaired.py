"""Two independent samples: Welch's t, time per request, comparison of studies, gate, rules."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.stats.diff import (
    are_pairs,
    as_sessions,
    compare_studies,
    diff_of_levels,
    environment_differences,
    other_machines,
)
from iolab.stats.gate import gate
from iolab.stats.imported import runs_to_decide
from iolab.stats.judge import judge
from iolab.stats.methods.verdict_rule import decide
from iolab.stats.methods.welch import estimate_difference
from iolab.stats.request_time import fit_line
from iolab.stats.rules import check_rules

logs = st.lists(st.floats(-2, 2), min_size=2, max_size=9)


@given(a=logs, b=logs)
def test_welch_agrees_with_scipy(a, b):
    from scipy.stats import ttest_ind

    found = estimate_difference(a, b)
    if min(max(side) - min(side) for side in (a, b)) < 1e-3:
        return  # scipy warns of what is nearly identical
    reference = ttest_ind(a, b, equal_var=False)
    low, high = reference.confidence_interval(0.95)
    half = found.half_width(0.95)
    assert found.p_value() == pytest.approx(float(reference.pvalue), abs=1e-9)
    assert (found.mean - half, found.mean + half) == pytest.approx((low, high), abs=1e-6)


def test_welch_keeps_its_level():
    """Unequal spreads, equal means: about one interval in twenty excludes 0."""
    draw = random.Random(7)
    wrong = 0
    for _ in range(2000):
        a = [draw.gauss(0, 0.01) for _ in range(5)]
        b = [draw.gauss(0, 0.04) for _ in range(8)]
        found = estimate_difference(a, b)
        wrong += abs(found.mean) > found.half_width(0.95)
    assert 0.035 < wrong / 2000 < 0.065


def test_welch_with_single_values_has_no_interval():
    found = estimate_difference([1.0], [0.5, 0.6])
    assert found.mean == pytest.approx(0.45)
    assert math.isinf(found.half_width(0.95))
    assert found.p_value() is None
    assert decide(found, 0.05).word == "undecided"


def test_runs_to_decide_falls_with_the_effect():
    large, small = runs_to_decide(0.5, 0.05, 0.05), runs_to_decide(0.1, 0.05, 0.05)
    assert large is not None
    assert small is not None
    assert large < small
    assert runs_to_decide(math.log1p(0.05), 0.05, 0.05) is None


@given(
    request=st.floats(1e3, 1e7),
    byte=st.floats(0.01, 100),
    sizes=st.lists(st.sampled_from([512 << k for k in range(15)]), min_size=2, unique=True),
)
def test_a_straight_line_is_found_again(request, byte, sizes):
    line = fit_line(sizes, [request + byte * size for size in sizes])
    assert line.request == pytest.approx(request, rel=1e-3, abs=1e-3 * byte * max(sizes))
    assert line.byte == pytest.approx(byte, rel=1e-3, abs=1e-3 * request / min(sizes))


@settings(max_examples=20)
@given(scale=st.floats(0.5, 2.0))
def test_line_scales_with_time(scale):
    sizes, times = [4096.0, 8192.0, 65536.0], [100.0, 108.0, 260.0]
    one, other = fit_line(sizes, times), fit_line(sizes, [t * scale for t in times])
    assert other.request == pytest.approx(one.request * scale)
    assert other.byte == pytest.approx(one.byte * scale)


def changed(data, factor, **study):
    rows = [replace(m, value=m.value * factor) for m in data.measurements]
    return replace(data, measurements=rows, study=replace(data.study, **study))


def test_real_studies_are_never_paired_and_simulated_ones_only_with_one_seed(canned):
    data = canned.demo()
    assert not are_pairs(data, data)
    simulated = changed(data, 1.0, kind="simulated")
    assert are_pairs(simulated, simulated)
    assert not are_pairs(simulated, changed(simulated, 1.0, seed=data.study.seed + 1))
    assert compare_studies(simulated, simulated).is_paired


def test_a_slower_study_is_a_regression_and_a_faster_one_passes(canned):
    data = canned.demo()

    def compared(other, margin):
        several = {"roles": ("primary",), "sessions": (3, 3)}
        return gate(compare_studies(data, other, margin=margin, **several))

    same = compared(data, 0.25)
    assert same.exit_code == 0, [c.label for c, o in same.cells if o != "pass"]
    worse = compared(changed(data, 0.5), 0.05)
    assert (worse.outcome, worse.exit_code) == ("regression", 5)
    better = compared(changed(data, 2.0), 0.05)
    assert better.exit_code == 0


def test_one_session_a_side_is_not_gated(canned):
    """Sessions differ by 3 to 10 %, which one of each cannot show: 6 to 32 % false alarms."""
    data = canned.demo()
    result = gate(compare_studies(data, changed(data, 0.5), margin=0.05, roles=("primary",)))
    assert (result.outcome, result.exit_code) == ("undecided", 4)
    assert "1 session a side cannot tell a change from" in result.obstacle
    simulated = changed(data, 1.0, kind="simulated")
    slower = changed(simulated, 0.5)
    assert gate(compare_studies(simulated, slower, margin=0.05)).exit_code == 5, "no sessions"


def test_sessions_are_the_unit_where_there_are_several(canned):
    sessions = [
        changed(canned.make_study(seed=n), factor) for n, factor in enumerate((1, 1.1, 0.9))
    ]
    diff = compare_studies(as_sessions(sessions), as_sessions(sessions), sessions=(3, 3))
    assert {(c.runs_before, c.runs_after) for c in diff.cells} == {(3, 3)}
    assert gate(diff).exit_code == 4, "10 % between sessions hide 5 %"


def test_levels_of_one_study_are_gated_by_its_pairs(canned):
    slower = judge(canned.make_study(throughput={"bfq": 0.8}))
    assert gate(diff_of_levels(slower, "s")).exit_code == 5
    assert gate(diff_of_levels(judge(canned.make_study(noise=0.005)), "s")).exit_code == 0


def test_noise_is_undecided_and_a_missing_cell_does_not_pass(canned):
    data = canned.demo()
    tight = gate(compare_studies(data, data, margin=0.0001, roles=("primary",)))
    assert tight.exit_code == 4
    operation = data.measurements[0].operation
    less = replace(data, measurements=[m for m in data.measurements if m.operation != operation])
    result = gate(compare_studies(data, less, margin=0.25, roles=("primary",)))
    assert result.missing
    assert result.exit_code == 4
    nothing = gate(compare_studies(data, replace(data, measurements=[])))
    assert nothing.exit_code == 4


def test_false_regressions_are_rare():
    """A/A: the same process twice, 12 cells: the gate may call at most one in twenty worse."""
    draw = random.Random(3)
    wrong = 0
    for _ in range(300):
        from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg

        cells = [
            estimate_difference(
                [draw.gauss(0, 0.05) for _ in range(6)], [draw.gauss(0, 0.05) for _ in range(6)]
            )
            for _ in range(12)
        ]
        adjusted = benjamini_hochberg([c.p_value() for c in cells])
        wrong += any(
            decide(c, 0.01).word == "worse" and p is not None and p < 0.05
            for c, p in zip(cells, adjusted, strict=True)
        )
    assert wrong / 300 < 0.06


def test_environment_differences_come_in_order(canned):
    data = canned.demo()
    one = replace(data, facts={"kernel.release": "6.14", "a": "1", "load.average": "3"})
    two = replace(data, facts={"kernel.release": "6.17", "a": "2", "load.average": "9"})
    found = [(d.name, d.before, d.after) for d in environment_differences(one, two)]
    assert found == [("kernel.release", "6.14", "6.17"), ("a", "1", "2")]


def test_other_machines_are_told_from_other_kernels_and_unknown_ones(canned):
    data = canned.make_study()

    def machines(**facts):
        other = replace(data, facts={k.replace("_", ".", 1): v for k, v in facts.items()})
        return [d.name for d in other_machines(replace(data, facts={"cpu.model": "A"}), other)]

    assert machines(cpu_model="B", kernel_release="9") == ["cpu.model"]
    assert machines(cpu_model="A", kernel_release="9") == []
    assert machines(kernel_release="9") == [], "nobody knows"
    simulated = canned.make_study(kind="simulated")
    assert [d.name for d in other_machines(data, simulated)][:1] == ["kind"]


def test_rules_of_a_clean_study_and_of_a_bad_one(canned):
    data = canned.demo()
    facts = {"kernel.release": "6", "cpu.model": "x", "memory.total": "1 kB"}
    clean = replace(data, facts=facts)
    found = {f.number: f for f in check_rules(clean, judge(clean))}
    assert sorted(found) == list(range(1, 13))
    assert [f.number for f in found.values() if f.status == "broken"] in ([], [11])
    bare = replace(data, facts={})
    assert {f.number for f in check_rules(bare, judge(bare)) if f.status == "broken"} >= {9}
    single = canned.make_study(rounds=1)
    broken = {f.number for f in check_rules(single, judge(single)) if f.status == "broken"}
    assert {5, 7} <= broken
    for finding in found.values():
        assert finding.evidence
        assert finding.advice or finding.status != "broken"
