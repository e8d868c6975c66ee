"""``iolab plan DIR``: what a stored study says about the next one like it, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolab.errors import AnalysisError
from iolab.store.continuing import command_on
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.stats.power_reached import LevelNoise, LookBack, Medians
    from iolab.stats.repetition import TrialLength
    from iolab.store.rows import StudyData

LEVELS_SHOWN: Final = 8
LENGTHS_SHOWN: Final = 3
NAMES_SHOWN: Final = 3
_LABEL_WIDTH: Final = 9


def look_back_text(data: StudyData, found: LookBack) -> str:
    """Write everything.

    Raises
    ------
    AnalysisError : the study has nothing to look back at.
    """
    if not found.levels:
        on = command_on(data.study, trials=data.trials)
        raise AnalysisError(
            f"study '{data.study.name}' has no two complete rounds of a comparison",
            f"finish it with `{on}`, or plan from its study.toml",
        )
    study = data.study
    lines = [
        f"Looking back at '{study.name}' on {study.testbed}:"
        f" {counted(found.levels[0].n_rounds, 'round')}, margin {found.margin * 100:.3g} %."
        " For a study like it:"
    ]
    lines += [f"{label:{_LABEL_WIDTH}}{text}" for label, text in _parts(found)]
    return "\n".join(lines)


def _parts(found: LookBack) -> Iterator[tuple[str, str]]:
    for level in found.levels[:LEVELS_SHOWN]:
        yield "noise", _noise_text(level)
        yield "rounds", _rounds_text(level)
    rest = len(found.levels) - LEVELS_SHOWN
    if rest > 0:
        yield "", f"{rest} more levels"
    yield "width", _width_text(found)
    yield "median", _median_text(found.medians)
    yield from _length_parts(found.lengths)


def _noise_text(level: LevelNoise) -> str:
    from iolab.stats.effect_words import percent

    whose = f"{level.kind}: " if level.kind else ""
    return (
        f"{whose}{level.level} / {level.baseline}: sd {percent(level.sd)} of a round's ratio,"
        f" at most {percent(level.sd_upper)} (80 % bound); it was {level.word}"
    )


def _rounds_text(level: LevelNoise) -> str:
    found = level.needed
    return (
        f"{_count(found.for_difference)} would find a difference of twice the margin,"
        f" {_count(found.for_same)} would show 'same' (80 % power)"
    )


def _width_text(found: LookBack) -> str:
    known = [level.n_for_width for level in found.levels if level.n_for_width is not None]
    if not known:
        return "8 rounds are needed to tell how many give an interval of a wanted width"
    return (
        f"for intervals of ±{found.margin * 100:.3g} % the first 8 rounds ask for {max(known)}"
        f' (Stein); `width = "{found.margin * 100:.3g}%"` in the study does so by itself'
    )


def _median_text(medians: Medians | None) -> str:
    if medians is None:
        return "10 rounds are needed to tell after how many a median is known well (CONFIRM)"
    share = f"±{medians.share * 100:.0f} %"
    total = len(medians.known) + len(medians.unknown)
    if not medians.known:
        return f"{medians.n_rounds} rounds do not tell any of {total} medians to {share} (CONFIRM)"
    worst = max(medians.known, key=lambda name: medians.known[name])
    text = (
        f"{len(medians.known)} of {total} medians are known to {share} after"
        f" {medians.known[worst]} rounds or fewer (CONFIRM; the last is {worst})"
    )
    if medians.unknown:
        names = ", ".join(medians.unknown[:NAMES_SHOWN])
        more = len(medians.unknown) - NAMES_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        text += f"; more than {medians.n_rounds} rounds are needed for {names}{rest}"
    return text


def _length_parts(lengths: list[TrialLength]) -> Iterator[tuple[str, str]]:
    if not lengths:
        yield "length", "trials too short, or rounds too few, to say how long trials should be"
        return
    worth = [row for row in lengths if row.is_worth_it]
    if not worth:
        yield "length", "trials are about as long as pays; more rounds buy more than longer trials"
        return
    for row in worth[:LENGTHS_SHOWN]:
        yield "length", length_text(row)
    if len(worth) > LENGTHS_SHOWN:
        yield "", f"{len(worth) - LENGTHS_SHOWN} more cells would gain from another length"


def length_text(row: TrialLength) -> str:
    """Say in a sentence how long trials of a cell should be."""
    from iolab.stats.effect_words import percent
    from iolab.stats.metrics.metric import format_ns

    now, best, beside = map(format_ns, (row.length_ns, row.best_ns, row.overhead_ns))
    between = f"rounds add {percent(row.round_sd)}"
    if row.round_sd == 0:
        between = "rounds add nothing that is seen"
    how = "longer trials pay" if row.is_longer_better else "more, shorter trials pay"
    return (
        f"{row.label}: {how}: about {best} instead of {now} would save {row.saving * 100:.0f} % of"
        f" the time (sd of a tenth of a trial {percent(row.part_sd)}, {between}; a trial takes"
        f" {beside} beside)"
    )


def _count(rounds: int | None) -> str:
    return "more than 1000 rounds" if rounds is None else counted(rounds, "round")
