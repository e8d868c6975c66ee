"""The order of trials as it really was: one row per round, one square per trial."""

from __future__ import annotations

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table
from iolab.report.charts.common import level_slots
from iolab.stats.sentence import kind_word
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData, TrialRow
from iolab.wording import counted

SYMBOLS = {"ok": "", "failed": "×", "interrupted": "!", None: "·"}

TRIALS_DRAWN_MAX = 4000
ROUNDS_DRAWN_MAX = 60
"""Rounds drawn of a study with more trials than that."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw the strip of rounds."""
    if not data.trials:
        return []
    slots = level_slots(data, verdict)
    every = sorted({t.round for t in data.trials})
    shown = _shown(data.trials)
    rounds = sorted({t.round for t in shown})
    note = ""
    if len(rounds) < len(every):
        note = f" Drawn: {len(rounds)} of {len(every)} rounds; study.db has all."
    series: dict[str, list[Point]] = {}
    for trial in shown:
        level = trial.levels.get(verdict.compared_factor, trial.workload)
        series.setdefault(level, []).append(_square(trial, rounds.index(trial.round)))
    row = "run" if data.study.kind == "imported" else "round"
    place = "table" if data.study.kind == "imported" else "round"
    ordered = sorted(series.items(), key=lambda item: (slots.get(item[0], 99), item[0]))
    return [
        ChartSpec(
            name="run_order",
            kind="strip",
            title="Runs of the table" if data.study.kind == "imported" else "Order of the trials",
            caption=_caption(data, verdict, len(every)) + note,
            x=Axis(f"place in the {place}"),
            y=Axis("round", categories=tuple(f"{row} {r}" for r in rounds)),
            panels=(
                Panel(
                    "",
                    tuple(
                        Series(level, tuple(points), slots.get(level, GREY))
                        for level, points in ordered
                    ),
                ),
            ),
            table=Table(
                (
                    "ordinal",
                    "round",
                    "place",
                    "workload",
                    "treatment",
                    "status",
                    "error",
                    "started (ns since 1970)",
                    "elapsed (ns)",
                ),
                tuple(
                    (
                        t.ordinal,
                        t.round,
                        t.position + 1,
                        t.workload,
                        _treatment(t),
                        t.status or "not run",
                        t.error,
                        t.started_at_unix_ns,
                        t.elapsed_ns,
                    )
                    for t in shown
                ),
            ),
        )
    ]


def _shown(trials: list[TrialRow]) -> list[TrialRow]:
    """Take whole rounds from the beginning, as many as can be looked at."""
    if len(trials) <= TRIALS_DRAWN_MAX:
        return trials
    counts: dict[int, int] = {}
    for trial in trials:
        counts[trial.round] = counts.get(trial.round, 0) + 1
    kept: set[int] = set()
    room = TRIALS_DRAWN_MAX
    for round_number in sorted(counts):
        room -= counts[round_number]
        if kept and (room < 0 or len(kept) >= ROUNDS_DRAWN_MAX):
            break
        kept.add(round_number)
    return [trial for trial in trials if trial.round in kept]


def _treatment(trial: TrialRow) -> str:
    return ", ".join(f"{name} = {level}" for name, level in trial.levels.items())


def _square(trial: TrialRow, row: int) -> Point:
    status = trial.status or "not run yet"
    error = f" ({trial.error})" if trial.error else ""
    return Point(
        trial.position,
        row,
        title=f"{trial.workload}: {_treatment(trial)}: {status}{error}",
        is_hollow=trial.status != "ok",
        symbol=SYMBOLS[trial.status],
    )


def _caption(data: StudyData, verdict: StudyVerdict, rounds: int) -> str:
    """Say whether the place inside a round mattered."""
    order = "in the order of the table" if data.study.command else "in a fresh random order"
    opening = f"{counted(rounds, 'round')}, each {order}"
    position = verdict.position
    if data.study.kind == "imported":
        return (
            f"{counted(rounds, 'run number')}, as the table has them; the order of"
            " running is not known, places are those of the table."
        )
    if kind_word(data.study):
        said = "simulated trials do not influence each other, so their order does not matter."
        return f"{opening}; {said}"
    if data.study.command:
        return f"{opening}; what the place in a round does cannot be told from what a row does."
    if position is None:
        return f"{opening}; too few trials to test whether the place in a round matters."
    change = f"{(position.ratio - 1) * 100:+.1f} %"
    verb = "matters" if position.p < 0.01 else "does not show an effect"
    return (
        f"{opening}; the place in a round {verb} (last against first {change},"
        f" p = {position.p:.2g})."
    )
