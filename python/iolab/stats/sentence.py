"""Verdicts in words that a newcomer understands; every number stands beside its interval.

The grammar is small on purpose: subject (a level), claim (ratio in the metric's own direction),
bounds of the 95 % interval, rounds. Percentages up to a factor of two, "times" beyond; never both
in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.stats.effect_words import (
    ROUNDS_MIN,
    SAME_EACH_TIME,
    Form,
    form_of,
    further_digits,
    has_no_width,
    joint_of,
    no_interval,
    size_of_effect,
    size_of_interval,
)
from iolab.stats.ledger import decides_cache, level_text
from iolab.stats.methods.verdict_rule import FURTHER_ROUNDS_LIMIT, ROUNDS_TO_PLAN
from iolab.stats.methods.verdict_rule import ROUNDS_MIN as ROUNDS_DECIDING
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.verdict import (
    BestLevels,
    Comparison,
    Effect,
    StudyVerdict,
    TreatmentSummary,
)
from iolab.stats.warmth import cells_all_cached
from iolab.stats.winners import winner_text
from iolab.store.rows import StudyData, StudyRow
from iolab.study.factors import is_mere_label
from iolab.wording import counted, is_or_are, sentence_case

NAMES_MAX: Final = 3
"""More levels than this with one word are counted, not listed."""
LISTED_MAX: Final = 12
"""Of more levels only the strongest is named; the rest is in the table."""
_VERIFIED: Final = {
    "full": " (with full verification)",
    "headers": " (with verification of block headers)",
}


def headline_sentence(verdict: StudyVerdict) -> str:
    """Return the answer of the study, as one to four sentences."""
    headline = verdict.headline
    if not headline:
        return f"Nothing is compared: {_why_nothing_is_compared(verdict)}."
    together = _equal_in_all(verdict)
    parts = [together] if together else []
    for group in () if together else dict.fromkeys(c.group for c in headline):
        mine = [c for c in headline if c.group == group]
        parts.append(
            _one_level(verdict, mine[0]) if len(mine) == 1 else _many_levels(verdict, mine)
        )
        parts.append(_winners(verdict, mine))
    parts += _other_workloads(verdict)
    rest = (
        _plateau(verdict),
        _warmth(verdict),
        _generator(headline),
        _failed(verdict),
        _robust(headline),
    )
    parts += [*rest, _first_trade_off(verdict)]
    return " ".join(part for part in parts if part)


def _equal_in_all(verdict: StudyVerdict) -> str:
    """Say once that two levels are the same, where they are in every class of the cells."""
    found = verdict.headline
    first = found[0]
    alike = [c for c in found if c.level == first.level and c.metric == first.metric and c.kind]
    if len(found) < 2 or len(alike) < len(found) or any(c.effect.word != "same" for c in found):
        return ""
    metric, factor = METRIC_BY_NAME[first.metric], verdict.compared_factor
    names = f"{level_text(factor, first.level)} and {level_text(factor, first.baseline)}"
    where = " and ".join(f"in {c.kind}" for c in found)
    average = ON_AVERAGE if any(c.is_on_average for c in found) else ""
    intervals = "; ".join(
        f"{c.kind}: {_spread(bounds_text(metric, c.effect), ', ')}{_numbers(verdict, [c])}"
        for c in found
    )
    head = ", ".join(t for t in (first.workload, mode_text(factor, first.is_direct)) if t)
    return (
        f"{_equal(metric, names)} {where}{average}: any difference is below"
        f" {margin_text(verdict.margin)} ({head}; {intervals})."
    )


def _winners(verdict: StudyVerdict, mine: Sequence[Comparison]) -> str:
    """Say for more than two levels which of them may be the best: no baseline is in that."""
    if len(mine) < 2 or all(c.effect.ratio is None for c in mine):
        return ""
    text = winner_text(verdict, mine[0].group)
    return f"{sentence_case(text)}." if text else ""


def _first_trade_off(verdict: StudyVerdict) -> str:
    """Say the first trade-off, and how many more there are."""
    found = verdict.trade_offs
    if not found:
        return ""
    rest = len(found) - 1
    return f"{found[0]} And {rest} more, below." if rest else found[0]


def _failed(verdict: StudyVerdict) -> str:
    """Say which levels had trials that failed, and how they stand if these count as the worst."""
    counts: dict[str, tuple[int, int]] = {}
    barred: dict[str, tuple[int, int]] = {}
    for c in verdict.headline:
        found = c.failures
        if found is None:
            continue
        counts[c.baseline] = (found.baseline_failed, found.baseline_trials)
        counts[c.level] = (found.level_failed, found.level_trials)
        if found.is_level_barred and found.rounds_told:
            barred[c.level] = (found.rounds_won, found.rounds_told)
    if not counts:
        return ""
    factor = verdict.compared_factor
    said = ", ".join(
        f"{level_text(factor, level)} {failed} of {total}"
        for level, (failed, total) in counts.items()
    )
    worst = "; ".join(
        f"counted as the worst, {level_text(factor, level)} is ahead in {won} of"
        f" {counted(told, 'round')}"
        for level, (won, told) in list(barred.items())[:NAMES_MAX]
    )
    return f"Trials that failed: {said}{f'; {worst}' if worst else ''}."


def _robust(headline: Sequence[Comparison]) -> str:
    """Say the median where it and the mean are further apart than the margin."""
    found = [c for c in headline if c.robust_ratio is not None]
    if not found:
        return ""
    c = found[0]
    metric = METRIC_BY_NAME[c.metric]
    size = size_of_effect(metric, c.robust_ratio or 1.0, form_of_effects([c.effect]))
    joint = joint_of(size)
    where = f"In {c.kind}, a" if c.kind else "A"
    rest = len(found) - 1
    more = f" The same holds in {counted(rest, 'more comparison')}." if rest else ""
    return (
        f"{where} few rounds shift the mean of {c.level}. Its median round is {size} {joint}"
        f" {c.baseline}.{more}"
    )


def _why_nothing_is_compared(verdict: StudyVerdict) -> str:
    """Say what is missing: trials, one of the two sides, or something that both have."""
    factor, baseline = verdict.compared_factor, verdict.baseline or "the baseline"
    measured = {row.level for row in verdict.treatments if row.level is not None}
    if not verdict.trials.ok:
        return "no trial has finished"
    if verdict.baseline not in measured:
        return f"nothing was measured with the baseline, {factor} '{baseline}'"
    if measured == {verdict.baseline}:
        return f"'{baseline}' is the only level of {factor} that was measured"
    if any(not c.is_affected for c in verdict.cells):
        return f"{factor} changes nothing in what was measured"
    return (
        f"{level_text(factor, baseline)} and the other levels of {factor} have no metric of the"
        " same operation in common"
    )


def alone_sentence(verdict: StudyVerdict, held: Mapping[str, str] | None = None) -> str:
    """Say what the only configuration of a study did, by the primary metric of its first tests.

    `held` are the levels that nothing varied: verification costs time and is said.
    """
    has_primary = any(METRIC_BY_NAME[row.metric].role == "primary" for row in verdict.treatments)
    first = {
        (row.workload, row.operation, row.cell_label, row.is_direct): row
        for row in reversed(verdict.treatments)
        if METRIC_BY_NAME[row.metric].role == "primary" or not has_primary
    }
    rows = list(reversed(first.values()))
    name = f"{verdict.compared_factor} = {verdict.baseline}" if verdict.compared_factor else ""
    if not rows:
        whose = f" of {name}" if name else ""
        return f"Nothing was compared, and no trial{whose} has finished."
    said = "; ".join(
        _values(mode, [row for row in rows if _path(row) == mode])
        for mode in dict.fromkeys(_path(row) for row in rows)
    )
    rounds = counted(rows[0].n, unit_of(verdict))
    verified = _VERIFIED.get((held or {}).get("verify", ""), "")
    which = f" ({name})" if name else ""
    return f"One configuration, nothing compared{which}: {said}{verified}; {rounds}."


def _path(row: TreatmentSummary) -> str:
    """Say which way the bytes of a result went; nothing if that is not known."""
    if row.is_direct is None:
        return ""
    if row.is_direct:
        return "direct"
    return "through the page cache" if row.is_page_cache else "buffered"


def _values(mode: str, rows: Sequence[TreatmentSummary]) -> str:
    """List the first results of one way, and how many more there are."""
    said = [
        f"{row.cell_label or row.operation} {METRIC_BY_NAME[row.metric].format(row.value)}"
        for row in rows[:NAMES_MAX]
    ]
    rest = f" and {len(rows) - NAMES_MAX} more" if len(rows) > NAMES_MAX else ""
    return f"{f'{mode}: ' if mode else ''}{', '.join(said)}{rest}"


def kind_sentence(study: StudyRow) -> str:
    """Say in a sentence of its own where the numbers of a study that did not run come from."""
    if study.kind == "imported":
        return f"{source_text(study)}."
    if study.stores_nothing:
        return f"On {study.testbed} nothing is stored: the speed is that of iolab itself."
    return f"Simulated on {testbed_name(study)}." if study.is_simulated else ""


def testbed_name(study: StudyRow) -> str:
    """Name the testbed of a study; of the file of a simulated stack the last part of its path.

    What a sentence says, and how long it is, does not depend on the directory it was said in; the
    whole path stands where devices are described.
    """
    kind, _, path = study.testbed.rpartition("/")
    return f"sim:{path}" if study.is_simulated and kind.startswith("sim:") else study.testbed


def kind_word(study: StudyRow) -> str:
    """Say ``simulated`` or ``imported`` wherever numbers stand; nothing for a real study."""
    return "" if study.kind == "real" else study.kind


def source_text(study: StudyRow) -> str:
    """Name the file that an imported study was read from."""
    return f"Imported from {study.testbed.removeprefix('imported:')}"


def is_order_unknown(data: StudyData) -> bool:
    """Tell whether nobody knows in which order the runs of an imported study were made."""
    return any(caveat.code == "order_unknown" for caveat in data.caveats)


def mode_text(compared_factor: str, is_direct: bool | None) -> str:
    """Say how the files were opened; nothing if that is what is compared, or not known."""
    if compared_factor == "direct" or is_direct is None:
        return ""
    return "direct I/O" if is_direct else "buffered I/O"


def form_of_effects(effects: Iterable[Effect]) -> Form:
    """Return the one form in which effects can be written, their intervals included."""
    ratios = list[float]()
    for effect in effects:
        ratios.append(_ratio(effect))
        if effect.interval_95 is not None:
            ratios += (effect.interval_95.low, effect.interval_95.high)
    return form_of(ratios)


def bounds_text(
    metric: Metric, effect: Effect, form: Form | None = None, *, rounds: int = ROUNDS_MIN
) -> str:
    """Write the 95 % interval of an effect in the metric's own direction.

    The direction is left out where both ends share it with the estimate: ``9.1 to 16 %``; both ends
    have one unit (:mod:`iolab.stats.effect_words`), which is that of the effect itself unless a
    sentence with other effects has another `form`. Few `rounds` may have none that says anything.
    """
    interval = effect.interval_95
    if interval is None:
        return "no interval from a single value"
    ends = (interval.low, interval.high)
    if has_no_width(ends):
        return SAME_EACH_TIME
    useless = no_interval(rounds, ends)
    if useless:
        return useless
    form = form or form_of_effects([effect])
    further = further_digits(metric, _ratio(effect), ends, form)
    return size_of_interval(metric, _ratio(effect), ends, form, further=further)


def size_text(metric: Metric, effect: Effect, form: Form | None = None) -> str:
    """Write the size of an effect in the form, and with the digits, that its interval needs."""
    form, interval = form or form_of_effects([effect]), effect.interval_95
    ends = () if interval is None else (interval.low, interval.high)
    further = further_digits(metric, _ratio(effect), ends, form) if ends else 0
    return size_of_effect(metric, _ratio(effect), form, further=further)


def margin_text(margin: float) -> str:
    """Write the margin as it was declared: ``5 %``."""
    return f"{margin * 100:.3g} %"


def rounds_text(effect: Effect, unit: str = "round") -> str:
    """Say how many further rounds (of a table: runs) would decide, if any number would."""
    if effect.reason:
        return effect.reason
    if effect.is_further_rounds_above_limit:
        chance = effect.chance_within_limit
        if chance is None or effect.further_rounds_least is None:
            return f"more than {FURTHER_ROUNDS_LIMIT} further {unit}s would be needed to decide"
        return (
            f"more {unit}s may not help: with {FURTHER_ROUNDS_LIMIT} more it would be decided in"
            f" {chance * 100:.0f} of 100 cases"
        )
    if effect.ratio is None:
        return f"no complete {unit} to judge by"
    if effect.further_rounds is None:
        return f"both are the same setting, so that no further {unit} can tell them apart"
    if effect.is_further_rounds_at_least:
        return _first_rounds(effect.further_rounds, unit)
    if effect.chance_within_limit is None:  # From a spread that others showed, not from rounds.
        return f"about {counted(effect.further_rounds, f'further {unit}')} would decide"
    last = "" if effect.further_rounds_least == effect.further_rounds else "the upper number "
    return f"{rounds_range(effect, unit)} would decide ({last}with 80 % chance)"


def _first_rounds(to_plan: int, unit: str) -> str:
    """Say how many more make a word possible, and how many a forecast, which are `to_plan`."""
    least = to_plan - (ROUNDS_TO_PLAN - ROUNDS_DECIDING)
    if least > 0:
        more = counted(least, f"more {unit}")
        return (
            f"at least {more} {is_or_are(least)} needed for a verdict, and {to_plan} to tell how"
            " many would decide"
        )
    return (
        f"any further {unit} may decide; after {counted(to_plan, f'more {unit}')} it can be told"
        " how many would"
    )


def rounds_range(effect: Effect, unit: str = "round") -> str:
    """Write the range of further rounds: ``10 to 25 further rounds``."""
    least, most = effect.further_rounds_least, effect.further_rounds
    if most is None or least is None or least == most:
        return counted(most or 0, f"further {unit}")
    return f"{least} to {most} further {unit}s"


def level_shown(verdict: StudyVerdict) -> str:
    """Write the level that all pooled intervals of a study have: ``95 %``."""
    levels = [c.effect.interval_95.confidence for c in verdict.pooled if c.effect.interval_95]
    return f"{max(levels, default=0.95) * 100:.4g} %"


def unit_of(verdict: StudyVerdict) -> str:
    """Say what a verdict counts: rounds of a study, runs of a table, hosts of a fleet."""
    return verdict.unit or ("round" if verdict.is_paired else "run")


def _one_level(verdict: StudyVerdict, c: Comparison) -> str:
    factor, effect = verdict.compared_factor, c.effect
    metric = METRIC_BY_NAME[c.metric]
    ours, base = level_text(factor, c.level), level_text(factor, c.baseline)
    scope = _scope(verdict, c)
    if effect.ratio is None:
        return f"Undecided: {ours} and {base} have no complete round in common ({scope})."
    bounds = bounds_text(metric, effect, rounds=c.rounds_used)
    detail = f"{_spread(bounds)}{scope}"
    match effect.word:
        case "better" | "worse":
            return f"{_claim(metric, ours, base, effect)} ({detail})."
        case "same":
            equal = _equal(metric, f"{ours} and {base}")
            average = ON_AVERAGE if c.is_on_average else ""
            margin = margin_text(verdict.margin)
            return f"{equal}{average}: any difference is below {margin} ({detail})."
        case "depends":
            return f"It depends: {_parts(c, metric, factor)} ({scope})."
        case "trivial":
            claim = _claim(metric, ours, base, effect)
            margin = margin_text(verdict.margin)
            average = ON_AVERAGE if c.is_on_average else ""
            return f"{claim}{average}, too little to matter: less than {margin} ({detail})."
        case _:
            detail = detail.replace(scope, _scope(verdict, c, has_kind=False)) if c.kind else detail
            claim, rounds = _undecided(verdict, metric, ours, base, effect)
            if is_mere_label(factor, c.level) and not effect.reason:
                claim, rounds = _undecided_label(metric, ours, base, effect, claim)
            lead = f"{sentence_case(c.kind)}: " if c.kind else ""
            claim = claim.replace("Undecided", "undecided", 1) if lead else claim
            after = f" {sentence_case(rounds)}." if rounds else ""
            return f"{lead}{claim} ({detail}).{after}"


def _spread(bounds: str, end: str = "; ") -> str:
    """Write bounds before a scope: an interval with its level, or why there is none; then `end`."""
    if bounds == SAME_EACH_TIME:
        return f"{bounds}{end}"
    return f"{bounds}, " if bounds.startswith("no ") else f"95 % interval {bounds}, "


def with_reason(said: str, study: StudyRow) -> str:
    """Say of a simulation, once, why an interval has no width."""
    if not study.is_simulated:
        return said
    return said.replace(SAME_EACH_TIME, f"{SAME_EACH_TIME}, as nothing here is random", 1)


ON_AVERAGE: Final = " on average over cells (single cells may differ)"


def _parts(c: Comparison, metric: Metric, factor: str) -> str:
    """Say where a level does what: ``bfq compared with none is 12 % faster in 4k, 9 % slower in
    64k``.
    """
    base = level_text(factor, c.baseline)
    return f"{level_text(factor, c.level)} compared with {base} is {_places(c, metric)}"


def _places(c: Comparison, metric: Metric) -> str:
    form = form_of([part.ratio for part in c.parts])
    texts = [
        f"{size_of_effect(metric, part.ratio, form)} in {part.label}"
        if part.direction != "same"
        else f"about the same in {part.label}"
        for part in c.parts
    ]
    return ", ".join(texts)


def _undecided(
    verdict: StudyVerdict, metric: Metric, ours: str, base: str, effect: Effect
) -> tuple[str, str]:
    """Say what is open, and what further rounds would bring; nothing where a reason withholds."""
    rounds = rounds_text(effect, unit_of(verdict))
    if effect.reason and effect.ratio is not None:
        return f"Undecided: measured {size_text(metric, effect)}, but {effect.reason}", ""
    if effect.sign != "none":
        claim = _claim(metric, ours, base, effect)
        margin = margin_text(verdict.margin)
        if effect.is_further_rounds_at_least and _is_settled(effect, verdict.margin):
            return f"{claim}, but in too few {unit_of(verdict)}s to judge by: undecided", rounds
        return f"{claim}, but perhaps by less than {margin}: undecided", rounds
    if metric.is_rate:
        question = f"{ours} is faster or slower than {base}"
    else:
        question = f"the {metric.compared_label} of {ours} is lower or higher than that of {base}"
    return f"Undecided whether {question}: measured {size_text(metric, effect)}", rounds


def _undecided_label(
    metric: Metric, ours: str, base: str, effect: Effect, claim: str
) -> tuple[str, str]:
    """Say of labels of one thing what is open: no number of rounds tells them apart."""
    if effect.sign != "none":
        return claim, "they are the same thing, so that this is noise"
    same = f"{ours} and {base} are the same thing, which noise hides here"
    return f"Undecided: {same}: measured {size_text(metric, effect)}", ""


def _is_settled(effect: Effect, margin: float) -> bool:
    """Tell whether the whole interval lies on one side of the margin, or within it."""
    found = effect.interval_95
    if found is None:
        return False
    least, most = 1 / (1 + margin), 1 + margin
    return found.low > most or found.high < least or least < found.low <= found.high < most


def _many_levels(verdict: StudyVerdict, headline: list[Comparison]) -> str:
    metric = METRIC_BY_NAME[headline[0].metric]
    factor = verdict.compared_factor
    by_word = {
        word: _ranked([c for c in headline if c.effect.word == word])
        for word in ("better", "worse", "undecided")
    }
    equal = [c for c in headline if c.effect.word in ("same", "trivial")]
    form = form_of_effects(c.effect for found in by_word.values() for c in found[:NAMES_MAX])
    named = NAMES_MAX if len(headline) <= LISTED_MAX else 1
    clauses = [
        _listed(found, factor, metric, form, named)
        for w in ("better", "worse")
        if (found := by_word[w])
    ]
    if equal:
        verb = "makes" if len(equal) == 1 else "make"
        margin = margin_text(verdict.margin)
        clauses.append(
            f"{_names(equal, factor)} {verb} no difference that matters (below {margin})"
            f"{ON_AVERAGE if any(c.is_on_average for c in equal) else ''}"
        )
    clauses += [
        f"it depends for {level_text(factor, c.level)}: {_places(c, metric)}"
        for c in headline
        if c.effect.word == "depends"
    ]
    if len(by_word["undecided"]) > NAMES_MAX and len(headline) > LISTED_MAX:
        clauses.append(f"{len(by_word['undecided'])} are undecided")
    elif by_word["undecided"]:
        clauses.append(_undecided_list(verdict, by_word["undecided"], metric, form))
    if headline[0].group != verdict.headline[0].group:  # The first class has said the rest.
        return f"In {headline[0].kind} ({_numbers(verdict, headline)}): {'; '.join(clauses)}."
    opening = f"Compared with {level_text(factor, verdict.baseline)}"
    if not metric.is_rate:
        opening = (
            f"By {metric.compared_label}, compared with {level_text(factor, verdict.baseline)}"
        )
    return f"{opening} ({_scope(verdict, *headline)}): {'; '.join(clauses)}."


def _ranked(found: list[Comparison]) -> list[Comparison]:
    """Order by strength of the effect, largest first; ties keep the order given."""
    return sorted(found, key=lambda c: -abs(_ratio(c.effect) - 1))


def _listed(
    found: list[Comparison], factor: str, metric: Metric, form: Form, named: int = NAMES_MAX
) -> str:
    texts = [
        f"{level_text(factor, c.level)} is {size_text(metric, c.effect, form)}"
        f" ({bounds_text(metric, c.effect, form, rounds=c.rounds_used)})"
        for c in found[:named]
    ]
    rest = [c.effect.word for c in found[named:]]
    words = [f"{rest.count(word)} more {word}" for word in dict.fromkeys(rest)]
    return ", ".join(texts + words)


def _undecided_list(
    verdict: StudyVerdict, found: list[Comparison], metric: Metric, form: Form
) -> str:
    texts: list[str] = []
    for c in found[:NAMES_MAX]:
        name = level_text(verdict.compared_factor, c.level)
        rounds = rounds_text(c.effect, unit_of(verdict))
        if c.effect.ratio is None:
            texts.append(f"{name} ({rounds})")
            continue
        measured = f"measured {size_text(metric, c.effect, form)}"
        if len(found) == 1:
            measured += f", {bounds_text(metric, c.effect, form, rounds=c.rounds_used)}"
        if c.effect.sign != "none":
            measured += f", but perhaps by less than {margin_text(verdict.margin)}"
        texts.append(f"{name} ({measured}; {rounds})")
    return "undecided: " + _with_rest(texts, len(found), "undecided")


def _with_rest(texts: list[str], total: int, word: str) -> str:
    rest = total - len(texts)
    return ", ".join([*texts, *([f"{rest} more {word}"] if rest else [])])


def _names(found: list[Comparison], factor: str) -> str:
    names = [level_text(factor, c.level) for c in found]
    if len(names) > NAMES_MAX + 1:
        return f"{', '.join(names[:NAMES_MAX])} and {len(names) - NAMES_MAX} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _plateau(verdict: StudyVerdict) -> str:
    """Say where a numeric factor stops paying, for the headline's group."""
    first = verdict.headline[0]
    for best in verdict.best_levels:
        if best.group != first.group:
            continue
        if best.plateau is None:
            return ""
        label = METRIC_BY_NAME[best.metric].label
        name = verdict.compared_factor
        if len(best.members) == 1:
            return (
                f"The best {label} comes with {name} {best.best}; no other is shown to be as good."
            )
        share = _share_of_best(best)
        if best.is_flat_beyond and best.plateau != best.best:
            return (
                f"From {name} {best.plateau} on nothing changes by more than"
                f" {margin_text(verdict.margin)}: its {label} is{share} that of the best,"
                f" {best.best}."
            )
        return (
            f"The best {label} comes with {name} {best.best}; {best.plateau} is the smallest"
            f" that is as good (within {margin_text(verdict.margin)})."
        )
    return ""


def _share_of_best(best: BestLevels) -> str:
    """Write the interval of the plateau's value as a share of the best one's."""
    metric, interval = METRIC_BY_NAME[best.metric], best.plateau_interval
    if interval is None:
        return ""
    ends = (interval.low, interval.high)
    low, high = ends if metric.is_higher_better else (1 / ends[1], 1 / ends[0])
    return f" {low * 100:.3g} to {high * 100:.3g} % of"


def _other_workloads(verdict: StudyVerdict) -> list[str]:
    """Say what was clearly found in workloads after the first; the undecided stay in the table."""
    sentences: list[str] = []
    for group in dict.fromkeys(c.group for c in verdict.pooled if not c.is_headline):
        mine = [c for c in verdict.pooled if c.group == group]
        clear = [c for c in mine if c.effect.word in ("better", "worse")]
        metric = METRIC_BY_NAME[mine[0].metric]
        by = "" if metric.is_rate else f" by {metric.label},"
        # Modes of the first workload have their own rows; classes and workloads are named here.
        where = f"{group[0]}, {group[2]}" if group[2] else group[0]
        if group[0] == verdict.headline[0].workload and not group[2]:
            continue
        if clear:
            form = form_of_effects(c.effect for c in _ranked(clear)[:NAMES_MAX])
            found = _listed(_ranked(clear), verdict.compared_factor, metric, form)
            sentences.append(f"In {where},{by} {found}.")
        sentences += [
            f"In {where} it depends: {_parts(c, metric, verdict.compared_factor)}."
            for c in mine
            if c.parts
        ]
    return sentences


def _warmth(verdict: StudyVerdict) -> str:
    headline = verdict.headline
    most = max(headline, key=lambda c: c.page_cache_cells)
    cached, total = most.page_cache_cells, most.n_cells
    if not cached:
        return ""
    which = "All" if cached >= total else f"{cached} of {total}"
    if decides_cache(verdict.compared_factor):
        return (
            f"{which} cells have a level that is page cache, as levels of"
            f" {verdict.compared_factor} should differ."
        )
    if cells_all_cached(verdict, headline[0].metric) < cached:
        return (
            f"{which} cells have a level that is page cache: most of its bytes never reached the"
            " device, so memory is compared with storage there."
        )
    return (
        f"{which} cells are page cache: most bytes never reached the device, so they compare"
        " memory, not storage."
    )


def _generator(headline: list[Comparison]) -> str:
    most = max(headline, key=lambda c: c.generator_bound_cells)
    bound, total = most.generator_bound_cells, most.n_cells
    if not bound:
        return ""
    which = "all" if bound >= total else f"{bound} of {total}"
    return (
        f"In {which} cells much of the time was the load generator's own: a difference between"
        " levels may be hidden there."
    )


def _scope(verdict: StudyVerdict, *comparisons: Comparison, has_kind: bool = True) -> str:
    """Name workload, mode, class, cells and rounds of comparisons of one family."""
    first = comparisons[0]
    mode = mode_text(verdict.compared_factor, first.is_direct)
    numbers = _numbers(verdict, comparisons)
    where = first.workload
    if verdict.metric_of is not None and first.is_headline:
        where = f"{where}/{verdict.metric_of}"
    kind = first.kind if has_kind else ""
    return ", ".join(text for text in (where, mode, kind, numbers) if text)


def _numbers(verdict: StudyVerdict, comparisons: Sequence[Comparison]) -> str:
    """Count the cells and rounds of comparisons of one family."""
    fewest, most = (pick(c.n_cells for c in comparisons) for pick in (min, max))
    cells = f"{most} cells" if most > 1 else ""
    if fewest != most:
        cells = f"{fewest} to {cells}"
    fewest, most = (pick(c.rounds_used for c in comparisons) for pick in (min, max))
    rounds = counted(most, unit_of(verdict))
    if fewest != most:
        rounds = f"{fewest} to {rounds}"
    return ", ".join(text for text in (cells, rounds) if text)


def _claim(metric: Metric, ours: str, base: str, effect: Effect) -> str:
    size = size_text(metric, effect)
    joint = joint_of(size)
    if metric.is_rate:
        return f"{ours} is {size} {joint} {base}"
    return f"The {metric.compared_label} of {ours} is {size} {joint} that of {base}"


def _equal(metric: Metric, names: str) -> str:
    if metric.is_rate:
        return f"{names} are equally fast"
    return f"{names} have the same {metric.compared_label}"


def _ratio(effect: Effect) -> float:
    return 1.0 if effect.ratio is None else effect.ratio
