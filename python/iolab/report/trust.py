"""Reasons to trust a study, or not to: one line per reason, with a sign that says whether it is in
order.
"""

from __future__ import annotations

from typing import Final, Literal

from iolab.frozen import frozen, replace
from iolab.report.charts.common import noise_floor
from iolab.report.collect import harness_cost_ns, kind_figures, trust_figures
from iolab.stats.calibration import ALPHA, RATE_MAX, STUDIES_WANTED, rate_told
from iolab.stats.effect_words import percent
from iolab.stats.environment import CONDITIONS, IDENTITY, environment_changes
from iolab.stats.neighbours import adjacent_text
from iolab.stats.rules import check_rules
from iolab.stats.sentence import margin_text
from iolab.stats.slices import CARRY_OVER_P, carry_over, design_of, twin_effect
from iolab.stats.verdict import StudyVerdict
from iolab.store.continuing import PLACE
from iolab.store.rows import StudyData
from iolab.study.slice_lengths import NS_PER_MS
from iolab.wording import is_or_are, sentence_case

Sign = Literal["good", "mind", "unknown", "plain"]
RULES: Final = "rules of sound benchmarking"
_RULES_ABOUT: Final = (
    "Twelve rules of T. Hoefler and R. Belli (SC'15) for results that others can rely on;"
    f" `iolab lint {PLACE}` prints what each of them says of this study."
)
SPARE: Final = "spare speed of the load generator"
_ABOUT: Final = {
    "rounds used": "Each round runs every treatment once; five are a good beginning.",
    "trials ok / planned": "A trial is one execution of a treatment in one round.",
    "order": "Drawn anew in each round, so that a drift of the machine favours no treatment.",
    "noise floor of these rounds": "Smaller differences are mostly not told from none.",
    "cells from the page cache": "Cells (an operation at one size, say) that measure memory.",
    "cells limited by the generator": "Cells in which the load generator itself was the limit.",
    "harness cost per op": "Time that the load generator itself takes for an operation.",
    "trials steady at the end": "Trials whose last half keeps its level (SNIA's bounds).",
    SPARE: "So many times the operations could be asked for, if each took no time.",
    "environment": "Facts of the machine that were not the same in all trials.",
}
"""Explanation by label, where the reason has none of its own."""
_RATE_ABOUT: Final = (
    "Small studies in which a treatment was compared with itself on this testbed, and how many"
    f" found a difference. {ALPHA:.0%} are promised, and a tick says that more than {RATE_MAX:.0%}"
    f" are ruled out; {STUDIES_WANTED} studies without one do that."
)
SIGNS: dict[Sign, str] = {"good": "✓", "mind": "!", "unknown": "?", "plain": "·"}


@frozen
class Reason:
    """One line of the box."""

    label: str
    value: str
    sign: Sign = "plain"
    about: str = ""
    """Explanation that appears under the mouse."""


def reasons(data: StudyData, verdict: StudyVerdict) -> list[Reason]:
    """Collect what speaks for and against the numbers."""
    figures = dict(trust_figures(data, verdict))
    found = [Reason(label, text) for label, text in kind_figures(data)[:1]]
    found.append(_rounds(verdict, figures))
    found += _design(data)
    if verdict.is_paired:
        trials = verdict.trials
        is_whole = trials.ok == trials.planned
        value = f"{trials.ok} / {trials.planned}"
        found.append(Reason("trials ok / planned", value, "good" if is_whole else "mind"))
    else:
        found.append(Reason("runs in the table", str(verdict.trials.ok)))
    is_known = data.study.kind != "imported"
    is_random = is_known and not data.study.command
    found.append(Reason("order", figures["order"], "good" if is_random else "mind"))
    found.append(_floor(data, verdict))
    if data.study.kind == "real":
        found.append(_false_positives(data))
    if is_known:
        found.append(_steady(verdict))
    found.append(_count("cells from the page cache", figures))
    if is_known:
        found.append(_count("cells limited by the generator", figures))
        found += _generator(data)
    if data.study.kind == "real":
        found.append(_environment(data))
    found.append(_rules(data, verdict))
    return [replace(one, about=one.about or _ABOUT.get(one.label, "")) for one in found]


def _rounds(verdict: StudyVerdict, figures: dict[str, str]) -> Reason:
    label = "rounds used" if verdict.is_paired else "runs a side"
    rounds = max((c.rounds_used for c in verdict.headline), default=0)
    return Reason(label, figures.get(label, "0"), "good" if rounds >= 5 else "mind")


def _design(data: StudyData) -> list[Reason]:
    """Sentence about how levels alternated, or how close they ran, if they did."""
    design = design_of(data)
    if neighbours := adjacent_text(data):
        return [Reason("design", neighbours)]
    if design is None:
        return []
    switches = f", a switch costs {design.switch_cost_ns / NS_PER_MS:.0f} ms"
    found = [
        Reason("design", design.text + (switches if design.switch_cost_ns else "")),
        Reason("the interval holds for", design.holds_for, "mind"),
    ]
    twins = twin_effect(data)
    if twins is not None:
        value = f"differ by {(twins.ratio - 1) * 100:+.1f} %; each level has each equally often"
        found.append(Reason("twin devices", value))
    carried = carry_over(data)
    if carried is not None:
        value = f"{(carried.ratio - 1) * 100:+.1f} % after itself (p = {carried.p:.2g})"
        sign: Sign = "mind" if carried.p < CARRY_OVER_P else "good"
        found.append(Reason("carry-over between slices", value, sign))
    return found


def _floor(data: StudyData, verdict: StudyVerdict) -> Reason:
    floor = noise_floor(verdict)
    if floor is None:
        is_simulated = data.study.is_simulated and len(verdict.headline) > 0
        text = "none: a simulation has no noise, only seeds" if is_simulated else "not known"
        return Reason("noise floor of these rounds", text, "plain" if is_simulated else "unknown")
    sign: Sign = "good" if floor - 1 <= verdict.margin else "mind"
    value = f"±{percent(floor - 1)} (margin {margin_text(verdict.margin)})"
    return Reason("noise floor of these rounds", value, sign)


def _false_positives(data: StudyData) -> Reason:
    """Finding of `iolab aa` on this testbed, if it was ever asked."""
    known = data.calibration
    label, told = "A/A false positives", rate_told(known)
    if told == "unasked" or known is None:
        return Reason(label, "not measured (iolab aa)", "unknown", _RATE_ABOUT)
    low, high = known["false_positive_low"], known["false_positive_high"]
    value = (
        f"{known['false_positives']} of {known['small_studies']}"
        f" ({low * 100:.0f} to {high * 100:.0f} %)"
    )
    value += ", not enough yet" if told == "open" else ""
    sign: Sign = "good" if told == "good" else "mind" if told == "bad" else "unknown"
    return Reason(label, value, sign, _RATE_ABOUT)


def _steady(verdict: StudyVerdict) -> Reason:
    courses = verdict.closer.time_courses
    judged = sum(c.n_trials - c.shapes.get("too_short", 0) for c in courses)
    label = "trials steady at the end"
    if not judged:
        text = "too short to tell" if courses else "not recorded"
        return Reason(label, text, "unknown")
    steady = sum(c.steady_trials for c in courses) / judged
    return Reason(label, f"{steady * 100:.0f} % of {judged}", "good" if steady >= 0.9 else "mind")


def _count(label: str, figures: dict[str, str]) -> Reason:
    text = figures.get(label, "not known")
    if not text[:1].isdigit():
        return Reason(label, text, "unknown")
    return Reason(label, text, "good" if text.startswith("0 ") else "mind")


def _generator(data: StudyData) -> list[Reason]:
    """Least factor by which the generator could have asked faster than it was answered."""
    cost = harness_cost_ns(data)
    if cost is None:
        return []
    found = [Reason("harness cost per op", f"{cost:.0f} ns")]
    spare: list[float] = []
    for detail in data.phase_details:
        workers = detail.get("workers") or []
        each = detail.get("harness_ns_per_op")
        spare += [
            w["elapsed_ns"] / w["ops"] / each
            for w in workers
            if each and w.get("ops") and w.get("elapsed_ns")
        ]
    if spare:
        least = min(spare)
        value = f"{least:.0f} times" if least >= 10 else f"{least:.1f} times"
        found.append(Reason(SPARE, f"at least {value}", "good" if least >= 5 else "mind"))
    return found


def _environment(data: StudyData) -> Reason:
    changes = environment_changes(data, (*IDENTITY, *CONDITIONS))
    if not changes:
        return Reason("environment", "equal in all trials", "good")
    names = ", ".join(change.fact for change in changes[:2])
    rest = f" and {len(changes) - 2} more" if len(changes) > 2 else ""
    return Reason("environment", f"changed: {names}{rest}", "mind")


def _rules(data: StudyData, verdict: StudyVerdict) -> Reason:
    findings = check_rules(data, verdict)
    kept = sum(f.status in ("kept", "not applicable") for f in findings)
    broken = [str(f.number) for f in findings if f.status == "broken"]
    unknown = [str(f.number) for f in findings if f.status == "unknown"]
    value = f"{kept} of {len(findings)} rules kept"
    if broken:
        value += f"; {_numbered(broken)} {is_or_are(len(broken))} broken"
    if unknown:
        value += f"; {_numbered(unknown)} could not be checked"
    sign: Sign = "mind" if broken else "unknown" if unknown else "good"
    named = "; ".join(
        f"rule {f.number}: {f.title}" for f in findings if f.status in ("broken", "unknown")
    )
    return Reason(RULES, value, sign, f"{_RULES_ABOUT} {sentence_case(named)}.".rstrip(" ."))


def _numbered(numbers: list[str]) -> str:
    *rest, last = numbers
    return f"rules {', '.join(rest)} and {last}" if rest else f"rule {last}"
