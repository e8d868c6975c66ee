"""Content of the first page: what to take, how sure, what next; the verdict table; the reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from iolab.report.answer import Answer, answer
from iolab.report.charts.common import noise_floor
from iolab.report.collect import draw_all
from iolab.report.conditions import Condition, condition_table, conditions
from iolab.report.findings import caveat_line, listed
from iolab.report.html import render_html
from iolab.report.trust import SPARE, Reason, reasons
from iolab.report.why import why_text
from iolab.stats.calibration import RATE_MAX, STUDIES_WANTED
from iolab.stats.caveats_of_simulation import CAUSE
from iolab.stats.finding import Finding
from iolab.stats.judge import judge
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.store.rows import StudyData
from iolab.wording import sentence_case

CALIBRATION = {
    "false_positives": 2,
    "small_studies": 40,
    "false_positive_low": 0.006,
    "false_positive_high": 0.17,
}


def _answer(data: StudyData) -> Answer:
    verdict = judge(data)
    return answer(data, verdict, conditions(data, verdict))


def _page(data: StudyData) -> str:
    verdict = judge(data)
    return render_html(data, verdict, draw_all(data, verdict))


def _reasons(data: StudyData) -> dict[str, Reason]:
    return {reason.label: reason for reason in reasons(data, judge(data))}


def _rows(data: StudyData) -> dict[str, Condition]:
    return {row.level: row for row in conditions(data, judge(data))}


def test_the_factorial_is_answered(canned: ModuleType) -> None:
    found = _answer(canned.factorial())
    assert [take.where.rpartition(", ")[2] for take in found.take] == [
        *("writes", "writes"),
        *("reads", "reads"),
    ]
    best = ("none or mq-deadline", "none, mq-deadline or kyber")
    for (throughput, tail), levels in zip((found.take[:2], found.take[2:]), best, strict=True):
        assert throughput.choice == levels
        assert not throughput.is_open
        assert tail.choice == "bfq"
        assert "times as high as none" in tail.reason
    assert any("noise floor" in text and "below the margin" in text for text in found.sure)
    assert any("iolab aa --on loop:1g" in typed for _, typed in found.steps)


def test_an_open_question_names_the_rounds_that_would_decide(canned: ModuleType) -> None:
    workload = canned.Workload("iozone", ("read",))
    data = canned.make_study(workloads=(workload,), rounds=6, noise=0.03, seed=2)
    verdict = judge(data)
    assert verdict.headline_word == "undecided"
    found = answer(data, verdict, conditions(data, verdict))
    effect = verdict.headline[0].effect
    more = effect.further_rounds
    assert more is not None
    assert effect.further_rounds_least is not None
    assert effect.further_rounds_least < more, "a range with its chance"
    assert f"iolab run DIR --resume --rounds {6 + more}" in [typed for _, typed in found.steps]


def test_too_much_noise_is_no_question_of_rounds(canned: ModuleType) -> None:
    found = _answer(canned.make_study(noise=0.5, rounds=6))
    text = found.steps[0][0]
    assert text.startswith("Get less noise first: differences below ")
    assert " mostly stay undecided with so many rounds." in text


def test_stars_stand_only_where_the_question_is_settled(canned: ModuleType) -> None:
    settled = _rows(canned.factorial())
    assert {level for level, row in settled.items() if row.is_winner} == {
        "none",
        "mq-deadline",
        "kyber",
    }
    noisy = _rows(canned.make_study(noise=0.5, rounds=6))
    assert _answer(canned.make_study(noise=0.5, rounds=6)).take[0].is_open
    assert not any(row.is_winner for row in noisy.values())
    assert all(row.may_be_best for row in noisy.values())


def test_a_row_has_value_tail_stalls_and_cost(canned: ModuleType) -> None:
    data = canned.factorial()
    row = _rows(data)["bfq"]
    assert row.primary is not None
    assert row.p99 is not None
    assert row.primary.low is not None
    assert row.primary.low < row.primary.value < (row.primary.high or 0)
    assert row.primary.n == row.p99.n == 8
    assert row.stalled is not None
    stalled, seen, longest = row.stalled
    mine = {trial.trial_id for trial in data.trials if trial.levels["scheduler"] == "bfq"}
    reads = [d for d in data.phase_details if d["trial_id"] in mine and d["nature"].kind == "read"]
    assert (stalled, seen) == (len(reads), len(reads))
    assert longest == 200_000_000
    assert _rows(data)["none"].stalled == (0, len(reads), 0)
    costs = [130_000_000 / sum(worker["ops"] for worker in detail["workers"]) for detail in reads]
    assert row.cpu_ns_per_op == pytest.approx(geometric_mean(costs))
    table = condition_table(list(_rows(data).values()), "scheduler")
    assert all(len(line) == len(table.columns) for line in table.rows)


def test_each_class_has_its_own_stalls_and_costs(canned: ModuleType) -> None:
    """Symptom: reads and writes showed one number, that of both; 40 series were 80 in the table."""
    data = canned.factorial()
    for detail in data.phase_details:
        detail["cpu_system_ns"] *= 3 if detail["nature"].kind == "write" else 1
    rows = conditions(data, judge(data))
    cost = {
        (row.group[2], row.level): row.cpu_ns_per_op
        for row in rows
        if row.cpu_ns_per_op is not None
    }
    assert all(cost["writes", level] > 2 * cost["reads", level] for _, level in cost)
    assert sum(row.stalled[1] for row in rows if row.stalled) == len(data.series)


def test_series_too_short_for_a_stall_say_nothing_of_stalls(canned: ModuleType) -> None:
    assert all(row.stalled is None for row in _rows(canned.make_study(slices=3)).values())


def test_reasons_tell_good_from_bad_and_unknown(canned: ModuleType) -> None:
    data = canned.factorial()
    found = _reasons(data)
    assert found["trials ok / planned"].sign == "good"
    assert found["A/A false positives"].sign == "unknown"
    assert found["environment"].sign == "mind"
    assert found[SPARE].sign == "good"
    assert found[SPARE].value.startswith("at least ")
    assert all(reason.about for reason in found.values()), "every reason is explained"
    kept = found["rules of sound benchmarking"]
    assert re.fullmatch(
        r"\d+ of 12 rules kept(; rules? [\d, and]+ (is|are) broken)?"
        r"(; rules? [\d, and]+ could not be checked)?",
        kept.value,
    )
    assert "Hoefler" in kept.about
    assert "iolab lint DIR" in kept.about
    numbers = re.findall(r"\d+", kept.value.partition(";")[2])
    assert all(f"ule {number}: " in kept.about for number in numbers), "by their names"
    known = _reasons(replace(data, calibration=CALIBRATION))
    assert known["A/A false positives"].value == "2 of 40 (1 to 17 %), not enough yet"
    assert known["A/A false positives"].sign == "unknown"
    none = CALIBRATION | {"false_positives": 0, "false_positive_low": 0.0}
    enough = _reasons(replace(data, calibration=none | {"false_positive_high": 0.088}))
    assert enough["A/A false positives"].value == "0 of 40 (0 to 9 %)"
    assert enough["A/A false positives"].sign == "good"
    bad = CALIBRATION | {"false_positives": 12, "false_positive_low": 0.16}
    assert _reasons(replace(data, calibration=bad))["A/A false positives"].sign == "mind"
    failed = _reasons(canned.demo())
    assert failed["trials ok / planned"].sign == "mind"


def test_a_check_that_tells_little_earns_no_tick_and_stays_a_step(canned: ModuleType) -> None:
    """Symptom: a tick for 0 of 4, an interval up to 60 %, and the advice to check was gone."""
    little = {
        "false_positives": 0,
        "small_studies": 4,
        "planned_rounds": 5,
        "false_positive_low": 0.0,
        "false_positive_high": 0.6,
    }
    data = replace(canned.make_study(throughput={"bfq": 0.5}), calibration=little)
    found = _reasons(data)["A/A false positives"]
    assert found.value == "0 of 4 (0 to 60 %), not enough yet"
    assert found.sign == "unknown"
    steps = dict(_answer(data).steps)
    (text,) = (text for text in steps if text.startswith("Check the testbed"))
    assert "4 small studies tell little" in text
    assert steps[text] == f"iolab aa --on loop:1g --rounds {STUDIES_WANTED * 5}"
    assert 1 - (0.05 / 2) ** (1 / STUDIES_WANTED) <= RATE_MAX
    known = replace(data, calibration=little | {"false_positive_high": 0.09})
    assert not any(text.startswith("Check the testbed") for text in dict(_answer(known).steps))


def test_the_noise_floor_is_the_width_of_the_intervals(canned: ModuleType) -> None:
    """Twice the noise gives about twice the floor; a simulation has none."""
    floors = [
        noise_floor(judge(canned.make_study(noise=noise, rounds=20))) for noise in (0.02, 0.04)
    ]
    low, high = (floor or 0.0 for floor in floors)
    assert 1.6 < (high - 1) / (low - 1) < 2.5
    assert noise_floor(judge(canned.simulated())) is None


def test_several_workloads_are_a_table(canned: ModuleType, tmp_path: Any) -> None:
    takes = _answer(canned.demo()).take
    assert list(dict.fromkeys(take.where for take in takes)) == [
        "iozone, writes",
        "iozone, reads",
        "contention",
    ]
    assert {take.purpose for take in takes} == {"throughput", "low p99"}


@pytest.mark.parametrize(
    ("fs", "factors", "facts", "is_repeatable"),
    [
        ("ext4", {}, {}, True),
        ("vxfs", {}, {}, False),
        ("none", {}, {"sim.fs": "ufs: clusters"}, False),
        ("none", {}, {"sim.fs": "xfs: groups"}, True),
        ("ext4", {"fs": ["ext4", "ufs"]}, {}, False),
    ],
)
def test_what_exists_in_simulation_alone_is_not_to_be_repeated_on_a_device(
    canned: ModuleType,
    fs: str,
    factors: dict[str, list[str]],
    facts: dict[str, str],
    is_repeatable: bool,
) -> None:
    data = canned.simulated()
    row = replace(
        data.study,
        testbed="sim:disk",
        settings={**data.study.settings, "fs": fs},
        factors={**data.study.factors, **factors},
    )
    data = replace(data, study=row, facts={**data.facts, **facts})
    steps = [text for text, _ in _answer(data).steps]
    assert any("Repeat on a real device" in text for text in steps) == is_repeatable


def test_a_single_comparison_is_not_counted(canned: ModuleType) -> None:
    """Symptom: "1 of 1 comparisons decided"."""
    read = (canned.Workload("iozone", ("read",)),)
    one = _answer(canned.make_study(throughput={"bfq": 0.5}, workloads=read))
    assert "the comparison is decided (95 %)" in one.sure
    open_one = _answer(canned.make_study(noise=0.03, rounds=6, seed=2, workloads=read))
    assert "the comparison is not decided yet" in open_one.sure
    many = _answer(canned.factorial()).sure
    said = re.compile(r"^(1 of \d+ comparisons is|\d+ of \d+ comparisons are) decided at 95 %")
    assert any(said.search(text) for text in many)


def test_the_choice_says_what_it_costs(canned: ModuleType) -> None:
    """Symptom: "take cfq" for a median, and not a word of its longest wait or of the writes."""
    data = canned.make_study(
        throughput={"bfq": 2.0},
        latency={"bfq": 8.0},
        workloads=(canned.Workload("iozone", ("read",), ("4k",)),),
    )
    take = _answer(data).take[0]
    assert take.choice == "bfq"
    assert take.cost.startswith("longest wait ")
    assert "(none: " in take.cost
    harmless = canned.make_study(
        throughput={"bfq": 2.0}, workloads=(canned.Workload("iozone", ("read",), ("4k",)),)
    )
    assert _answer(harmless).take[0].cost == ""
    page = _page(data)
    assert f"but: </b>{take.cost}" in page


def test_a_slow_tenth_and_another_class_are_costs(canned: ModuleType) -> None:
    data = canned.make_study(throughput={"bfq": 2.0}, rounds=6)
    slower = [
        replace(m, value=m.value / 4)
        if (m.operation, m.levels["scheduler"]) == ("write", "bfq") and "throughput" in m.metric
        else m
        for m in data.measurements
    ]
    tenths = [
        replace(m, metric="latency_ns_p90", value=m.value * 40)
        for m in data.measurements
        if m.metric == "latency_ns_p50" and m.levels["scheduler"] == "bfq"
    ]
    takes = _answer(replace(data, measurements=[*slower, *tenths])).take
    (take,) = (t for t in takes if t.choice == "bfq" and t.purpose == "throughput")
    assert "one operation in ten takes" in take.cost
    assert re.search(r"writes \d[\d.]* (%|times) slower", take.cost)


def test_a_dash_says_why_there_is_no_p99(canned: ModuleType) -> None:
    """Symptom: a column of dashes, and nobody knew whether it was forgotten or unknowable."""
    data = canned.make_study()
    without = [m for m in data.measurements if m.metric != "latency_ns_p99"]
    few = replace(data, measurements=without)
    assert "too few operations (needs 1 000)" in _page(few)
    bare = replace(data, measurements=[m for m in data.measurements if "latency" not in m.metric])
    page = _page(bare)
    assert "not recorded" in page.partition('id="verdicts"')[2].partition("</table>")[0]


def test_the_first_screen_has_the_reason_that_the_terminal_has(canned: ModuleType) -> None:
    data = canned.make_study(throughput={"bfq": 0.5})
    details = [{**d, "device_read_bytes": 4096} for d in data.phase_details]
    data = replace(data, phase_details=details)
    verdict = judge(data)
    said = why_text(data, verdict)
    assert "--trace" in said
    first = _page(data).partition('class="contents"')[0]
    assert f"<dd>{sentence_case(said)}</dd>" in first


def test_a_model_says_its_cause_where_a_device_would_be_traced(canned: ModuleType) -> None:
    data = canned.make_study(throughput={"bfq": 0.1}, kind="simulated")
    verdict = judge(data)
    cause = Finding(
        "far_apart", f"in this model bfq is slow. {CAUSE}: seeks 9 with bfq, 1 with none."
    )
    told = replace(verdict, caveats=[*verdict.caveats, cause])
    assert why_text(data, told) == "in the model, seeks 9 with bfq, 1 with none"


def test_an_open_choice_has_one_wording(canned: ModuleType) -> None:
    """Symptom: "none or bfq" for throughput and "none, for now" for p99, both not told apart."""
    takes = [take for take in _answer(canned.make_study(noise=0.5, rounds=4)).take if take.is_open]
    assert {take.purpose for take in takes} == {"throughput", "low p99"}
    assert {(take.choice, take.reason) for take in takes} == {("none or bfq", "not told apart yet")}


def test_the_first_screen_says_on_what_when_and_how_to_repeat_it(canned: ModuleType) -> None:
    """Symptom: it named a device and a file system, but neither machine nor day nor command."""
    data = canned.make_study()
    guest = replace(data, facts={**data.facts, "virtualization": "KVM"})
    first = _page(guest).partition('class="contents"')[0]
    assert "Example &lt;CPU&gt; &amp; Co, Linux 6.18.5; a virtual machine (KVM)" in first
    assert ", 2025-10-09</dd>" in first
    assert "<dt>Repeat</dt><dd><code>iolab run DIR --out NEW</code></dd>" in first
    assert "DIR: this page&#x27;s directory" in first
    bare = replace(data, facts={**data.facts, "virtualization": "none"})
    assert "a virtual machine" not in _page(bare).partition('class="contents"')[0]
    simulated = canned.simulated()
    assert "<dt>Machine</dt>" not in _page(simulated)


def test_the_first_caveats_have_their_words_beside_the_answer(canned: ModuleType) -> None:
    """Symptom: "3 caveats", and what they were stood a screen below."""
    data = canned.factorial()
    verdict = judge(data)
    said = caveat_line(verdict)
    told = listed(verdict, "first screen")
    assert told
    assert said.startswith(sentence_case(told[0].says)[:30])
    assert re.search(r"; \d+ more below$", said)
    assert len(said) < 140
    assert f"<dt>Caveats</dt><dd>{said}</dd>" in _page(data)


def test_a_figure_is_drawn_again_from_what_is_stored(canned: ModuleType) -> None:
    """Symptom: below each figure stood a command that measured all again, from no file at all."""
    page = _page(canned.make_study())
    typed = re.findall(r"<summary>command</summary><code>([^<]*)</code>", page)
    assert typed
    assert all(text.startswith("iolab report DIR ") for text in typed)
    assert all(text.endswith("; DIR: this page&#x27;s directory") for text in typed)


def test_a_factor_is_written_as_people_write_it(canned: ModuleType) -> None:
    """Symptom: record-size, record_size and record size on one screen."""
    data = canned.record_sizes()
    assert data.study.compared_factor == "record_size"
    first = _page(data).partition('class="contents"')[0]
    assert "Is another level of record size better than" in first
    assert re.search(r'<th title="[^"]+">record size</th>', first)
    assert "Which record_size" not in first
