"""The first screen in words: which level to take for what, how sure that is, what to do next.

Rules over the judged study, in the order in which they are tried; nothing here decides a word.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from iolab.frozen import frozen, replace
from iolab.report.charts.common import noise_floor
from iolab.report.conditions import Condition
from iolab.report.costs import cost_text
from iolab.report.scope import stored_spec
from iolab.stats.calibration import STUDIES_WANTED, rate_told
from iolab.stats.effect_words import percent, size_of_effect
from iolab.stats.findings import kind_of
from iolab.stats.ledger import build_ledger, decides_cache, level_text
from iolab.stats.obstacles import obstacle
from iolab.stats.repetition import trial_lengths
from iolab.stats.sentence import (
    is_order_unknown,
    margin_text,
    mode_text,
    rounds_text,
    unit_of,
)
from iolab.stats.trade_offs import NOT_UNIFORM, TRADE_OFF
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.stats.winners import standing
from iolab.store.continuing import (
    PLACE,
    can_get_rounds,
    command_again,
    command_on,
    is_continuable,
)
from iolab.store.rows import StudyData
from iolab.study.factors import find_factor, is_factor, is_mere_label
from iolab.study.testbeds import can_be_real, testbed_kind
from iolab.wording import counted, is_or_are, sentence_case

NAMES_MAX = 4
STEPS_MAX = 3
TAKE_MAX = 12
NOT_TOLD = "not told apart yet"
NOISY_MARGINS = 3
"""From a noise floor of so many margins on, more rounds are no remedy."""
POINT_WIDTH = 1e-6
"""An interval of a ratio below this width has no width: all rounds gave the same."""


@frozen
class Take:
    """Level to take for one purpose."""

    purpose: str
    """``throughput``, ``low p99``."""
    choice: str
    reason: str
    is_open: bool = False
    where: str = ""
    """Workload and mode."""
    cost: str = ""
    """Price of the choice: where it is worse."""


@frozen
class Answer:
    """Three columns of the first screen."""

    take: tuple[Take, ...]
    sure: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    """Sentence, and a command or an empty text."""


def answer(data: StudyData, verdict: StudyVerdict, rows: Sequence[Condition]) -> Answer:
    """Compose the three columns."""
    return Answer(_take(verdict, rows), _sure(data, verdict), _steps(data, verdict, rows))


def _take(verdict: StudyVerdict, rows: Sequence[Condition]) -> tuple[Take, ...]:
    takes: list[Take] = []
    has_modes = len({row.group[1] for row in rows}) > 1
    for group in dict.fromkeys(row.group for row in rows):
        mine = [row for row in rows if row.group == group]
        if len(mine) < 2:
            continue
        mode = mode_text(verdict.compared_factor, group[1]) if has_modes else ""
        where = ", ".join(text for text in (group[0], mode, group[2]) if text)
        first = _by_primary(verdict, mine)
        takes.append(replace(first, where=where, cost=cost_text(verdict, mine, first.choice)))
        tail = [row.p99_comparison for row in mine if row.p99_comparison is not None]
        if tail:
            takes.append(replace(_by_words(verdict, tail, "low p99"), where=where))
    return tuple(takes[:TAKE_MAX])


def _by_primary(verdict: StudyVerdict, rows: list[Condition]) -> Take:
    factor = verdict.compared_factor
    purpose = rows[0].metric.label
    equal = [row.level for row in rows if row.is_winner]
    candidates = [row.level for row in rows if row.may_be_best]
    margin = margin_text(verdict.margin)
    if len(equal) > 1 and len(equal) == len(rows):
        return Take(purpose, _names(equal, factor, "or"), f"equally good within {margin}: take any")
    if len(candidates) == 1:
        rest = [level for level in equal if level != candidates[0]]
        reason = "the only one that can be the best (95 % confidence)"
        if rest:
            reason = f"the best; {_names(rest, factor)} as good within {margin}"
        return Take(purpose, level_text(factor, candidates[0]), reason)
    if len(equal) > 1 and set(candidates) <= set(equal):
        return Take(purpose, _names(equal, factor, "or"), f"equally good within {margin}: take any")
    if candidates:
        return Take(purpose, _names(candidates, factor, "or"), NOT_TOLD, is_open=True)
    return _by_words(verdict, [r.comparison for r in rows if r.comparison], purpose)


def _by_words(verdict: StudyVerdict, found: Sequence[Comparison], purpose: str) -> Take:
    """Choose by the words against the baseline alone."""
    from iolab.stats.metrics import METRIC_BY_NAME

    factor, baseline = (
        verdict.compared_factor,
        level_text(verdict.compared_factor, verdict.baseline),
    )
    better = sorted(
        (c for c in found if c.effect.word == "better"), key=lambda c: -(c.effect.ratio or 1)
    )
    if better:
        metric = METRIC_BY_NAME[better[0].metric]
        size = size_of_effect(metric, better[0].effect.ratio or 1)
        more = f"; so {'is' if len(better) == 2 else 'are'} {len(better) - 1} more"
        reason = f"{size} than {baseline}".replace("fast than", "fast as")
        reason = reason.replace("high than", "high as")
        return Take(
            purpose,
            level_text(factor, better[0].level),
            reason + (f"{more} better than {baseline}" if len(better) > 1 else ""),
        )
    if any(c.effect.word == "depends" for c in found):
        reason = "cells disagree: look at your own sizes and operations"
        return Take(purpose, "it depends", reason, is_open=True)
    if any(c.effect.word == "undecided" for c in found):
        levels = [verdict.baseline, *(c.level for c in found if c.effect.word != "worse")]
        names = _names(levels, factor, "or")
        return Take(purpose, names, NOT_TOLD, is_open=True)
    equal = [c.level for c in found if c.effect.word in ("same", "trivial")]
    if equal:
        names = _names([verdict.baseline, *equal], factor, "or")
        return Take(purpose, names, f"no difference above {margin_text(verdict.margin)}")
    return Take(purpose, baseline, "every other level is worse")


def _names(levels: Sequence[str], factor: str, joint: str = "and") -> str:
    names = [level_text(factor, level) for level in levels]
    if len(names) > NAMES_MAX:
        return f"{', '.join(names[: NAMES_MAX - 1])} {joint} {len(names) - NAMES_MAX + 1} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"


def _sure(data: StudyData, verdict: StudyVerdict) -> tuple[str, ...]:
    headline = verdict.headline
    rounds = max((c.rounds_used for c in headline), default=0)
    order = "in the order of the table" if data.study.command else "in random order"
    unit = unit_of(verdict)
    each = "each " if rounds > 1 else ""
    how = f", {each}{order}" if verdict.is_paired else " a side"
    how += ", order not known" if not verdict.is_paired and is_order_unknown(data) else ""
    ran = f"; {counted(verdict.trials.ok, 'trial')}" if verdict.is_paired else ""
    sure = [f"{counted(rounds, unit)}{how}{ran}"]
    floor = noise_floor(verdict)
    if floor is not None:
        fits = "below" if floor - 1 < verdict.margin else "above"
        size = percent(floor - 1)
        margin = margin_text(verdict.margin)
        sure.append(f"noise floor of these {unit}s {size}, {fits} the margin of {margin}")
    if data.study.is_simulated and headline and all(_is_a_point(c) for c in headline):
        sure.append(f"every {unit} gave the same ratio: more of them add nothing")
    words = [c.effect.word for c in headline]
    if words:
        settled = len(words) - words.count("undecided") - words.count("depends")
        sure.append(_decided(settled, len(words)))
    if data.study.is_simulated:
        sure.append("simulated: as good as the model, no more")
    return tuple(sure)


def _decided(settled: int, total: int) -> str:
    """Say how many comparisons of the headline are decided, and with which confidence."""
    if total == 1:
        return (
            "the comparison is decided (95 %)" if settled else "the comparison is not decided yet"
        )
    decided = f"{is_or_are(settled)} decided at 95 % for all of them together"
    return f"{settled} of {total} comparisons {decided}"


def _is_a_point(comparison: Comparison) -> bool:
    found = comparison.effect.interval_95
    return found is not None and found.high - found.low < POINT_WIDTH


def _steps(
    data: StudyData, verdict: StudyVerdict, rows: Sequence[Condition]
) -> tuple[tuple[str, str], ...]:
    steps: list[tuple[str, str]] = []
    trials = verdict.trials
    is_own = data.study.kind != "imported"
    if is_own and trials.not_run + trials.interrupted:
        rest = trials.not_run + trials.interrupted
        missing = f"{counted(rest, 'trial')} {is_or_are(rest)} missing"
        if not is_continuable(data.study):
            text = f"Measure it again: {missing}, and it cannot be continued."
            steps.append((text, command_again(data.study)))
        elif hindrance := obstacle(data):
            steps.append((f"{sentence_case(missing)}: {hindrance}.", ""))
        else:
            steps.append((f"Finish it: {missing}.", command_on(data.study, trials=data.trials)))
    steps += _measure_on(data, verdict, rows, is_own=is_own)
    remedies = (kind_of(f.kind).next_step for f in verdict.caveats)
    found = (remedy(data, verdict) for remedy in remedies if remedy is not None)
    steps += [step for step in found if step is not None]
    steps += _settle(data, verdict)
    return tuple(steps[:STEPS_MAX])


def _measure_on(
    data: StudyData, verdict: StudyVerdict, rows: Sequence[Condition], *, is_own: bool
) -> list[tuple[str, str]]:
    """Say how many rounds would decide what is open, unless it cannot change the choice."""
    undecided = [
        c for c in verdict.headline if c.effect.word == "undecided" and not c.effect.reason
    ]
    if not undecided:
        return []
    group = undecided[0].group
    candidates = {row.level for row in rows if row.group == group and row.may_be_best}
    open_ones = [c for c in undecided if not candidates or c.level in candidates]
    if candidates and not open_ones and verdict.baseline not in candidates:
        n = len(undecided)
        verb = "level is" if n == 1 else "levels are"
        return [(f"{n} {verb} undecided, but none of them may be the best: leave it.", "")]
    if hides := _equal_labels(data, verdict, undecided):
        return hides
    if all(c.page_cache_cells >= c.n_cells for c in undecided) and not decides_cache(
        verdict.compared_factor
    ):
        return []  # More rounds would measure memory again: the step after this one says how not.
    floor = noise_floor(verdict)
    # Of few rounds the spread is not known: what they say of the noise is no advice yet.
    is_early = any(c.effect.is_further_rounds_at_least for c in open_ones or undecided)
    if not is_early and floor is not None and floor - 1 > NOISY_MARGINS * verdict.margin:
        text = (
            f"Get less noise first: differences below {percent(floor - 1)} mostly stay undecided"
            f" with so many {unit_of(verdict)}s."
        )
        return [(f"{text} {_less_noise(data)}", "")]
    c = max(open_ones or undecided, key=lambda c: c.effect.further_rounds or 0)
    command = ""
    if is_own and c.effect.further_rounds and not c.effect.is_further_rounds_above_limit:
        rounds = c.rounds_used + c.effect.further_rounds
        command = (
            command_on(data.study, rounds=rounds, trials=data.trials)
            if can_get_rounds(data.study)
            else command_again(data.study, rounds=rounds)
        )
    level = level_text(verdict.compared_factor, c.level)
    if c.effect.further_rounds is None and not c.effect.is_further_rounds_above_limit:
        return []  # No number of rounds would decide it: trials fail, or both are one setting.
    rounds = rounds_text(c.effect, unit_of(verdict))
    if c.effect.is_further_rounds_above_limit and not c.effect.reason:
        return [(f"For {level}, {rounds}.", command)]
    return [(f"Measure on, for {level}: {rounds}.", command)]


def _equal_labels(
    data: StudyData, verdict: StudyVerdict, undecided: Sequence[Comparison]
) -> list[tuple[str, str]]:
    """Say of an A/A study what its testbed can tell: there is nothing to be decided."""
    if not all(is_mere_label(verdict.compared_factor, c.level) for c in undecided):
        return []
    floor = noise_floor(verdict)
    if floor is None or any(c.effect.is_further_rounds_at_least for c in undecided):
        return []
    text = (
        f"The labels are one thing, and nothing is to be decided: so many {unit_of(verdict)}s"
        f" mostly do not tell differences below {percent(floor - 1)} from none on this testbed."
    )
    if floor - 1 > verdict.margin:
        text += f" To see {margin_text(verdict.margin)}, get less noise: {_less_noise(data)}"
    return [(text, "")]


def _less_noise(data: StudyData) -> str:
    """Say what helps against noise, as `iolab plan` says it of the length of trials."""
    lengths = trial_lengths(build_ledger(data))
    ways = {row.is_longer_better for row in lengths if row.is_worth_it}
    if not lengths:
        return "Larger files, longer trials and a machine without other work help."
    if ways == {True}:
        return "Longer trials and a machine without other work help."
    if ways == {False}:
        return (
            "A machine without other work helps; longer trials do not: more, shorter ones tell more"
            " in the same time."
        )
    if ways:
        return (
            "A machine without other work helps; `iolab plan` of this study says for which cells"
            " longer trials would, and for which shorter ones."
        )
    return "A machine without other work helps; trials are about as long as pays."


def _settle(data: StudyData, verdict: StudyVerdict) -> list[tuple[str, str]]:
    """Say how to use the answer, and where it does not reach."""
    steps: list[tuple[str, str]] = []
    if any(text.startswith(TRADE_OFF) for text in verdict.trade_offs):
        steps.append(("Decide what counts more: the metrics point different ways.", ""))
    elif any(text.startswith(NOT_UNIFORM) for text in verdict.trade_offs):
        text = "Look at your own sizes and operations below: levels are not alike in all cells."
        steps.append((text, ""))
    is_aa = is_mere_label(verdict.compared_factor, verdict.baseline)
    if data.study.kind == "real" and not is_aa:
        steps += _check(data)
    repeat = testbed_kind(data.study.testbed.partition(":")[0]).next_step
    if repeat and all(can_be_real(name) for name in _file_systems(data)):
        typed = _elsewhere(data)
        steps.append((f"{repeat.removesuffix('.')}:" if typed else repeat, typed))
    better = [c for c in verdict.headline if c.effect.word == "better"]
    if better and verdict.compared_factor == "scheduler" and data.study.kind == "real":
        winners = standing(verdict, better[0].group).winners
        better = [c for c in better if c.level in winners]
    if better and verdict.compared_factor == "scheduler" and data.study.kind == "real":
        best = max(better, key=lambda c: c.effect.ratio or 1)
        command = f"echo {shlex.quote(best.level)} > /sys/block/DEVICE/queue/scheduler"
        steps.append((f"Use {best.level}:", command))
    return steps


def _check(data: StudyData) -> list[tuple[str, str]]:
    """Say that the testbed is to be checked with itself, until that has told something."""
    told, known = rate_told(data.calibration), data.calibration or {}
    command = f"iolab aa --on {shlex.quote(data.study.testbed)}"
    if told == "unasked":
        return [("Check the testbed with itself once.", command)]
    if told != "open":
        return []
    n, size = known["small_studies"], known.get("planned_rounds", 1)
    text = f"Check the testbed with itself for longer: {counted(n, 'small study', 'small studies')}"
    text += f" {'tells' if n == 1 else 'tell'} little."
    return [(text, f"{command} --rounds {max(n + 1, STUDIES_WANTED) * size}")]


def _file_systems(data: StudyData) -> set[str]:
    """Names of the file systems that a study has measured, of its stack file too."""
    study = data.study
    held = {study.settings["fs"]} if "fs" in study.settings else set[str]()
    told = {data.facts.get(_SIMULATED_FS, ""), *data.varying_facts.get(_SIMULATED_FS, {}).values()}
    of_stacks = {text.partition(":")[0] for text in told if text}
    return {str(name) for name in held | of_stacks | set(study.factors.get("fs", ()))}


_SIMULATED_FS = "sim.fs"
"""Fact of a simulated stack with a file system: its name, a colon, and its title."""


def _elsewhere(data: StudyData) -> str:
    """Return the command that repeats the study on a device, where `iolab run` can do that."""
    study = data.study
    levels = study.factors.get(study.compared_factor, [])
    if study.command or (
        is_factor(study.compared_factor)
        and set(levels) & dict(find_factor(study.compared_factor).former_choices).keys()
    ):
        return ""  # Today's kernels lack a level.
    # A directory keeps its file system: a study that names one, or that there is to be none,
    # cannot lie there.
    settings = stored_spec(study).get("settings")
    names_one = "fs" in study.factors or (isinstance(settings, dict) and "fs" in settings)
    where = "dir:PATH" if study.is_simulated and not names_one else "device:/dev/DISK"
    return f"iolab run {PLACE} --on {where}"
