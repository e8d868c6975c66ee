"""Result of an A/A study about its testbed, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.library.power_reached import length_text
from iolab.stats.effect_words import percent
from iolab.study.slice_lengths import length_text as slice_text
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.stats.calibration import Calibration, Control
    from iolab.stats.noise_by_length import ErrorOfLength

BAR_WIDTH: Final = 40


def calibration_lines(result: Calibration) -> list[str]:
    """Write a calibration, a fact per line."""
    of = f" of {result.kind}" if result.kind else ""
    lines = [
        f"A/A{of} over {counted(result.n_rounds, 'round')}: B / A = {result.ratio:.4f}"
        f" [{result.ratio_low:.4f}, {result.ratio_high:.4f}]; sd of a round's ratio"
        f" {result.sd * 100:.2g} %, at most {result.sd_upper * 100:.2g} % (80 % bound).",
        f"False positives: {result.false_positives} of"
        f" {counted(result.small_studies, 'study', 'studies')} of {result.planned_rounds} rounds"
        f" differ (95 % interval {result.false_positive_low * 100:.0f} to"
        f" {result.false_positive_high * 100:.0f} %);"
        f" of studies that draw {result.planned_rounds} of these rounds at random"
        f" {result.false_positive_resampled * 100:.1f} % do (5 % would be chance).",
        f"Noise floor: {result.planned_rounds} rounds cannot tell differences below"
        f" {result.noise_floor * 100:.3g} % from nothing.",
    ]
    if result.lag_one is not None and result.lag_one_chance is not None:
        said = "a trial forgets the one before"
        if abs(result.lag_one) > result.lag_one_chance:
            said = (
                "a trial remembers the one before. Random order keeps comparisons fair; a pause or"
                " fresh files between trials would make them sharper"
            )
        lines.append(
            f"Memory: correlation of each trial with the one before {result.lag_one:+.2f} (chance"
            f" alone: -{result.lag_one_chance:.2f} to {result.lag_one_chance:.2f}); {said}."
        )
    if result.position_ratio is not None and result.position_p is not None:
        lines.append(
            f"Place in the round: {(result.position_ratio - 1) * 100:+.3g} % from the first to the"
            f" last (p = {result.position_p:.2g})."
        )
    return [*lines, *_level_lines(result), *_control_lines(result.control)]


def length_lines(rows: Sequence[ErrorOfLength]) -> list[str]:
    """Draw the standard error after three minutes by length of slice; nothing without slices."""
    if not rows:
        return []
    most = max(row.error for row in rows)
    lines = ["Where the noise lives: standard error after 3 min, by length of slice."]
    for row in rows:
        bar = "#" * max(1, round(BAR_WIDTH * row.error / most))
        lines.append(f"  {slice_text(row.length_ns):>7}  {row.error * 100:6.2g} %  {bar}")
    return lines


def _level_lines(result: Calibration) -> list[str]:
    """Sources of the noise, and advice on longer trials or more of them."""
    lines: list[str] = []
    noise = result.noise_by_level
    if noise is not None:
        many = ""
        if noise.trials_per_round > 1:
            many = f"; {noise.trials_per_round} equal trials a round would pay"
        lines.append(
            f"Where the noise is: sd {percent(noise.part_sd)} between tenths of a trial, trials"
            f" add {percent(noise.trial_sd)}, rounds {percent(noise.round_sd)}{many}."
        )
    row = result.trial_length
    if row is not None and row.is_worth_it:
        lines.append(f"Length of trials: {length_text(row)}.")
    elif row is not None:
        lines.append("Length of trials: about as long as pays.")
    return lines


def _control_lines(control: Control | None) -> list[str]:
    if control is None:
        return []
    found = "found" if control.is_found else "NOT found: do not trust small differences here"
    expected = "as expected"
    if not control.is_as_expected and control.high < control.expected_ratio:
        expected = "more than expected (a pause is at least as long as asked)"
    elif not control.is_as_expected:
        expected = "less than expected"
    return [
        f"Positive control {control.label}: {found}; ratio {control.ratio:.3f}"
        f" [{control.low:.3f}, {control.high:.3f}], {expected}: {control.expected_ratio:.3f}."
    ]
