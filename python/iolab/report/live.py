"""A study as it stands now: progress, intervals as they close, values by round, caveats so far.

All of it comes from what is stored: nothing is written during a trial, so that a running trial is
seen when it has ended. Left out: the phase that runs, which only the process that measures knows.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from iolab import units
from iolab.frozen import frozen
from iolab.report.folding import clean_text, fold_text
from iolab.stats.collect_findings import is_count_said
from iolab.stats.effect_words import no_interval
from iolab.stats.ledger import Group, Ledger, build_ledger, level_text
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.stats.methods.student import estimate_mean
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.pairing import without_parts
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.continuing import command_again, command_on, is_continuable
from iolab.store.rows import StudyData, TrialRow
from iolab.wording import counted

Status = Literal["running", "finished", "stopped"]
BLOCKS: Final = "▁▂▃▄▅▆▇█"
SPARK_MAX: Final = 24
"""Rounds that a row of blocks shows; of more, the last ones."""
CAVEATS_MAX: Final = 8
LEVELS_MAX: Final = 16
_LATENCY: Final = ("latency_ns_p99", "latency_ns_mean", "response_ns_p99")
"""Latencies of which the first that was measured stands beside the metric of the verdict."""
_BAR: Final = 30
_NO_SPREAD: Final = 1e-6
"""Half width of the rounds of a simulation that are equal."""
_WIDE_FROM: Final = 9.9995
"""Ratios from here on have one digit behind the point."""


@frozen
class LevelLine:
    """One level of the compared factor."""

    level: str
    value: str
    """Geometric mean of the verdict's metric over the cells it is about, and rounds; with unit."""
    values: str
    """The same by round, as blocks from 0 to the largest of all levels."""
    latency: str
    latencies: str
    ratio: float | None = None
    """Against the baseline; above 1 is better."""
    interval: tuple[float, float] | None = None
    """Ends of the 95 % interval of the ratio, of the verdict."""
    n_rounds: int = 0
    """Rounds that it is of."""
    closing: str = ""
    """Half widths after each round from the second on, as blocks from 0 to the largest."""
    word: str = ""


@frozen
class LiveState:
    """Everything that a view of a study shows."""

    name: str
    where: str
    status: Status
    n_done: int
    n_planned: int
    n_failed: int
    rounds_done: int
    rounds_planned: int
    elapsed_ns: int
    left_ns: int | None
    """Time until the planned trials are done, by the pace so far; None if nothing is left."""
    upcoming: str
    """Trial that runs, or comes next; empty if none does."""
    part: str
    """Workload and class of the operations that the levels are compared by."""
    metric: str
    latency_metric: str
    baseline: str
    levels: tuple[LevelLine, ...]
    levels_left_out: int
    caveats: tuple[str, ...]
    caveats_left_out: int
    sentence: str
    """Sentence of the verdict; empty while there is none."""
    way_on: str = ""
    """Way to continue the study, after a sentence; empty where nothing is known."""

    @property
    def share_done(self) -> float:
        """Share of the planned trials that are done."""
        return (self.n_done + self.n_failed) / self.n_planned if self.n_planned else 1.0

    def progress_text(self) -> str:
        """Write the progress in one line."""
        parts = [
            f"{self.n_done} of {counted(self.n_planned, 'trial')}",
            f"{self.rounds_done} of {counted(self.rounds_planned, 'complete round')}",
        ]
        if self.n_failed:
            parts.append(f"{self.n_failed} failed")
        if self.elapsed_ns:
            took = units.format_duration_rounded(self.elapsed_ns)
            parts.append(f"{took} so far" if self.status == "running" else f"in {took}")
        if self.left_ns and self.status == "running":
            parts.append(f"about {units.format_duration_rounded(self.left_ns)} left")
        return ", ".join(parts)

    @property
    def caveats_title(self) -> str:
        """Heading of the caveats."""
        return "Caveats so far" if self.status == "running" else "Caveats"

    def note(self) -> str:
        """Say what must be kept in mind about what is seen now."""
        if self.status == "running":
            return (
                "Intervals are of the rounds so far. Do not stop by what you see: a study that ends"
                " when it looks good errs more often. --looks and --width end a study soundly."
            )
        if self.status == "stopped":
            return f"Nothing writes this study now{self.way_on}."
        return ""


def live_state(
    data: StudyData,
    verdict: StudyVerdict | None,
    *,
    is_running: bool,
    directory: Path | None = None,
) -> LiveState:
    """Collect the state of a study.

    Parameters
    ----------
    verdict : of the trials so far; None if they allow none.
    is_running : whether a process writes the study.
    directory : place in which it can go on; None, as of an archive, is not known.
    """
    trials = data.trials
    done = [trial for trial in trials if trial.status == "ok"]
    failed = [trial for trial in trials if trial.status == "failed"]
    waiting = [trial for trial in trials if not _is_over(trial)]
    status: Status = "running" if is_running else "stopped" if waiting else "finished"
    elapsed = _elapsed_ns(trials)
    n_ended = len(done) + len(failed)
    headline = verdict.headline if verdict is not None else []
    ledger = build_ledger(data)
    group = _group(ledger, headline)
    metric = _metric(ledger, headline, group)
    latency = _latency(ledger, group, metric)
    levels = _levels(ledger, headline, group, (metric, latency))
    caveats = _caveats(data, verdict)
    return LiveState(
        name=data.study.name,
        where=f"{data.study.testbed}" + (" (simulated)" if data.study.is_simulated else ""),
        status=status,
        n_done=len(done),
        n_planned=len(trials),
        n_failed=len(failed),
        rounds_done=_complete_rounds(trials),
        rounds_planned=len({trial.round for trial in trials}),
        elapsed_ns=elapsed,
        left_ns=elapsed * len(waiting) // n_ended if n_ended and waiting else None,
        upcoming=_trial_text(waiting[0]) if waiting else "",
        part=", ".join(text for text in (group[0], group[2]) if text) if group else "",
        metric=metric.label if metric else "",
        latency_metric=latency.label if latency else "",
        baseline=data.study.baseline,
        levels=tuple(levels[:LEVELS_MAX]),
        levels_left_out=max(0, len(levels) - LEVELS_MAX),
        caveats=tuple(caveats[:CAVEATS_MAX]),
        caveats_left_out=max(0, len(caveats) - CAVEATS_MAX),
        sentence=verdict.sentence if verdict is not None else "",
        way_on=_way_on(data, directory),
    )


def _way_on(data: StudyData, directory: Path | None) -> str:
    if directory is None:
        return ""
    if not is_continuable(data.study):
        return f", and it cannot be continued: `{command_again(data.study)}` measures it again"
    on = command_on(data.study, place=shlex.quote(str(directory)), trials=data.trials)
    return f"; `{on}` continues it"


def _is_over(trial: TrialRow) -> bool:
    """Tell whether a trial is over: one that was interrupted is still to be made."""
    return trial.status not in (None, "interrupted")


def _elapsed_ns(trials: Sequence[TrialRow]) -> int:
    """Time that the trials so far took, without pauses between sessions."""
    begins = sorted(t.started_at_unix_ns for t in trials if t.started_at_unix_ns is not None)
    if not begins:
        return 0
    last = max(
        (t.started_at_unix_ns or 0) + (t.elapsed_ns or 0) for t in trials if t.started_at_unix_ns
    )
    return max(last - begins[0], sum(t.elapsed_ns or 0 for t in trials))


def _complete_rounds(trials: Sequence[TrialRow]) -> int:
    rounds: dict[int, bool] = {}
    for trial in trials:
        rounds[trial.round] = rounds.get(trial.round, True) and _is_over(trial)
    return sum(rounds.values())


def _trial_text(trial: TrialRow) -> str:
    levels = " · ".join(level_text(name, level) for name, level in trial.levels.items())
    return f"{trial.trial_id}, round {trial.round}: {trial.workload} {levels}".strip()


def _group(ledger: Ledger, headline: Sequence[Comparison]) -> Group | None:
    """Workload, mode and class that the sentence of the verdict begins with."""
    if headline:
        return headline[0].group
    return next(iter(ledger.groups()), None)


def _metric(ledger: Ledger, headline: Sequence[Comparison], group: Group | None) -> Metric | None:
    if headline:
        return METRIC_BY_NAME[headline[0].metric]
    return ledger.primary_metric(group) if group else None


def _latency(ledger: Ledger, group: Group | None, metric: Metric | None) -> Metric | None:
    """Return the first latency beside the metric of the verdict that its own cells have."""
    wanted = (METRIC_BY_NAME[name] for name in _LATENCY)
    return next(
        (one for one in wanted if group and one != metric and ledger.cells_asked(one, group)), None
    )


def _levels(
    ledger: Ledger,
    headline: Sequence[Comparison],
    group: Group | None,
    metrics: tuple[Metric | None, Metric | None],
) -> list[LevelLine]:
    """One line per level, all drawn on one scale."""
    metric, latency = metrics
    if metric is None or group is None:
        return []
    compared: dict[str, Comparison] = {}
    for comparison in headline:  # The first group of a level is the one that the sentence names.
        if comparison.metric == metric.name:
            compared.setdefault(comparison.level, comparison)
    names = ledger.levels_in_order or [""]
    groups = {level: compared[level].group if level in compared else group for level in names}
    values = {level: _by_round(ledger, metric, level, groups[level]) for level in names}
    delays = dict[str, list[float]]()
    if latency:
        delays = {level: _by_round(ledger, latency, level, groups[level]) for level in names}
    top = max((v for found in values.values() for v in found), default=1.0)
    longest = max((v for found in delays.values() for v in found), default=1.0)
    halves = {level: _half_widths(comparison) for level, comparison in compared.items()}
    widest = max((half for found in halves.values() for half in found), default=1.0)
    lines: list[LevelLine] = []
    for level, found in values.items():
        mine, own = compared.get(level), halves.get(level, [])
        waits = delays.get(level, [])
        lines.append(
            LevelLine(
                level=level or ledger.data.study.name,
                value=metric.format(geometric_mean(found)) if found else "",
                values=blocks(found, top),
                latency=latency.format(geometric_mean(waits)) if latency and waits else "",
                latencies=blocks(waits, longest),
                ratio=mine.effect.ratio if mine else None,
                interval=_ends(mine),
                n_rounds=mine.rounds_used if mine else 0,
                closing=blocks(own, widest),
                word=mine.word if mine else "",
            )
        )
    return lines


def _by_round(ledger: Ledger, metric: Metric, level: str, group: Group) -> list[float]:
    """Geometric mean over the judged cells of a level, for each round that all of them have.

    Other parts of a workload (a stream in the background) are in no value beside a verdict.
    """
    cells = [
        by_level[level]
        for by_level in without_parts(ledger.cells_asked(metric, group)).values()
        if level in by_level
    ]
    if not cells:
        return []
    rounds = set.intersection(*(set(samples.by_round) for samples in cells))
    return [
        geometric_mean([m.value for samples in cells for m in samples.by_round[number]])
        for number in sorted(rounds)
    ]


def _ends(comparison: Comparison | None) -> tuple[float, float] | None:
    found = comparison.effect.interval_95 if comparison else None
    return None if found is None else (found.low, found.high)


def _half_widths(comparison: Comparison) -> list[float]:
    """Half widths of the 95 % interval after two, three, ... rounds, as shares."""
    ratios = [comparison.round_ratios[number] for number in sorted(comparison.round_ratios)]
    logs = [math.log(ratio) for ratio in ratios if ratio > 0]
    return [
        math.expm1(min(700.0, estimate_mean(logs[:n]).half_width(0.95)))
        for n in range(2, len(logs) + 1)
    ]


def _caveats(data: StudyData, verdict: StudyVerdict | None) -> list[str]:
    """Objections of trials, the newest first, then those to the study.

    One that the report has too has the report's words: they name the same numbers.
    """
    told = {f.kind: f.says.rstrip(".") for f in verdict.caveats} if verdict is not None else {}
    counts = Counter(caveat.code for trial in data.trials for caveat in trial.caveats)
    newest = {
        caveat.code: caveat.message
        for trial in sorted(data.trials, key=lambda trial: trial.ordinal)
        for caveat in trial.caveats
    }
    of_trials = [
        says
        if is_count_said(says := told.get(code, newest[code]), counts[code])
        else f"{says} ({counted(counts[code], 'trial')})"
        for code in reversed(list(newest))
    ]
    failed = Counter(t.error for t in data.trials if t.status == "failed" and t.error)
    failures = [f"failed: {error} ({counted(n, 'trial')})" for error, n in failed.items()]
    of_study = [told.get(caveat.code, caveat.message) for caveat in data.caveats]
    return [*failures, *of_trials, *of_study]


def blocks(values: Sequence[float], top: float) -> str:
    """Draw values as blocks from 0 to `top`, the last `SPARK_MAX` of them."""
    last = list(values)[-SPARK_MAX:]
    most = len(BLOCKS) - 1
    places = [round(most * value / top) if top > 0 else 0 for value in last]
    return "".join(BLOCKS[min(most, max(0, place))] for place in places)


def live_text(state: LiveState, width: int = 80) -> str:
    """Write the state once, in lines of `width` columns."""
    done = round(_BAR * state.share_done)
    lines = [
        fold_text(f"{state.name}: {state.status}, on {state.where}", width, "  "),
        f"[{'#' * done}{'.' * (_BAR - done)}] {state.share_done:.0%}",
        fold_text(state.progress_text(), width, "  "),
    ]
    if state.upcoming and state.status == "running":
        lines.append(fold_text(f"now: {state.upcoming}", width, "  "))
    lines += _level_lines(state, width)
    if state.caveats:
        lines += ["", f"{state.caveats_title}:"]
        lines += [fold_text(f"- {text}", width, "  ") for text in state.caveats]
        if state.caveats_left_out:
            lines.append(f"- and {state.caveats_left_out} more (iolab report DIR --full)")
    for text in (state.sentence, state.note()):
        if text:
            lines += ["", fold_text(text, width)]
    return "\n".join(lines)


def _level_lines(state: LiveState, width: int) -> list[str]:
    if not state.levels:
        return ["", "No trial is finished yet."] if not state.n_done else []
    against = f", against {state.baseline}" if state.baseline else ""
    part = f"{state.part}: " if state.part else ""
    then = f"; then {state.latency_metric}" if state.latency_metric else ""
    lines = ["", fold_text(f"{part}{state.metric} by round{against}{then}", width)]
    names = [clean_text(line.level)[:24] for line in state.levels]
    room = max(map(len, names))
    for line, name in zip(state.levels, names, strict=True):
        ratio = ratio_text(line)
        parts = [f"{name:{room}}", f"{line.value:>12}", line.values]
        lines.append("  " + "  ".join(part for part in parts if part))
        below = [part for part in (ratio, line.closing) if part]
        if below:
            lines.append("  " + " " * room + "  " + "  ".join(below))
        if line.latency:
            lines.append(f"  {' ' * room}  {line.latency:>12}  {line.latencies}")
    if state.levels_left_out:
        lines.append(f"  and {state.levels_left_out} more levels")
    return lines


def ratio_text(line: LevelLine) -> str:
    """Write the ratio with its interval and its word; empty for the baseline."""
    if line.ratio is None:
        return ""
    ends = ""
    if line.interval is not None:
        low, high = line.interval
        told = f" ({_ratio(low)} to {_ratio(high)})"
        useless = no_interval(line.n_rounds, line.interval)
        ends = ", no spread" if high / low - 1 < 2 * _NO_SPREAD else useless and f", {useless}"
        ends = ends or told
    return f"{_ratio(line.ratio)} times{ends}: {line.word}"


def _ratio(value: float) -> str:
    """Write a ratio with the digits that a table has."""
    return f"{value:.3f}" if value < _WIDE_FROM else f"{value:.1f}"
