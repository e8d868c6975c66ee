"""``iolab aa``: the same treatment under two labels; how noisy, how honest is this testbed?

A study like any other, planned, run, stored and resumed by the same code: its compared factor is
`label`, whose levels change nothing. Afterwards the testbed's calibration is computed and kept for
`iolab plan`. With ``--inject`` a third label pauses after each operation: a slow-down of known size
that must be found.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab import units
from iolab.cli import flags
from iolab.cli.conduct import AnswerForm, conduct, run_options
from iolab.cli.console import Console
from iolab.errors import IolabError, StudyError
from iolab.library import calibrations
from iolab.library.services import Services
from iolab.run import outputs
from iolab.store.db import STORE_NAME, Store
from iolab.store.users_files import Allowed, refuse_foreign_results, write_results
from iolab.study.factors import DELAY_PREFIX
from iolab.study.load import load_study, study_from_table
from iolab.study.model import Factor, Study
from iolab.testbed.model import make_testbed
from iolab.wording import counted, is_or_are

if TYPE_CHECKING:
    from iolab.stats.calibration import Calibration, Control

NAME = "aa"
HELP = "the same treatment under two labels: noise and honesty of a testbed"

ROUNDS: Final = 20
ROUNDS_MIN: Final = 4
"""Fewer tell no spread; `iolab.stats.calibration` refuses them as well."""
PLANNED_ROUNDS: Final = 5
PAUSE_MAX_NS: Final = 100_000_000
"""The longest pause after an operation: a trial of two seconds still has twenty of them."""
RESULT_NAME: Final = "aa.json"
EXIT_NOT_FOUND: Final = 5
_LABELS: Final = ("A", "B")
_PROBE: Final[dict[str, Any]] = {
    "name": "probe",
    "kind": "mixed",
    "duration": "2s",
    "streams": [
        {
            "name": "reader",
            "direction": "read",
            "pattern": "uniform",
            "record_size": "4k",
            "depth": 1,
            "workers": 1,
            "file_size": "64m",
        }
    ],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    group = parser.add_argument_group("study")
    group.add_argument(
        "--on", dest="testbed", metavar="TESTBED", help="where: loop[:SIZE], dir:PATH, sim:PROFILE"
    )
    group.add_argument(
        "--workload",
        metavar="STUDY.toml",
        help="first workload, settings and first levels of a study (random 4k reads, depth 1)",
    )
    group.add_argument("--rounds", metavar="N", help=f"pairs of trials ({ROUNDS})")
    group.add_argument("--budget", metavar="TIME", help="stop before a round that would not fit")
    group.add_argument("--margin", metavar="SHARE", help="smallest difference that matters (5%%)")
    group.add_argument("--seed", metavar="N", help="seed of the order (drawn and stored)")
    group.add_argument(
        "--for-rounds",
        metavar="N",
        default=str(PLANNED_ROUNDS),
        help=f"size of the studies that rates are given for ({PLANNED_ROUNDS})",
    )
    group.add_argument(
        "--inject",
        metavar="TIME",
        help="pause after each operation of a third label, as in 20us: must be found",
    )
    parser.set_defaults(**dict.fromkeys(flags.study_keys()))
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the A/A study, evaluate it, keep the result."""
    planned = _planned_rounds(arguments.for_rounds)
    study = _study(arguments)
    _check_rounds(study)
    options, shown = run_options(arguments), AnswerForm.of(arguments)
    if options.is_dry_run:
        return conduct(study, options, shown, services, console)
    choose = outputs.latest_directory if options.is_resumed else outputs.fresh_directory
    out_dir = options.out or choose(study.name)
    allowed = Allowed.of(options.overwrite)
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    reports = outputs.reports_in(out_dir)
    allowed.refuse_useless([*reports, out_dir / RESULT_NAME, calibrations.file_of(testbed)])
    options = replace(
        options,
        out=out_dir,
        overwrite=tuple(str(path) for path in reports if allowed.has(path)),
        continued_by="the same command and --resume",
    )
    refuse_foreign_results(out_dir, [RESULT_NAME], allowed)
    calibrations.check(testbed, allowed)
    code = conduct(study, options, shown, services, console)
    with Store.open_reader(out_dir / STORE_NAME) as store:
        data = store.load_data()
    from iolab.stats.calibration import calibrate

    result = calibrate(data, services.judge(data), planned_rounds=planned)  # type: ignore[arg-type]
    kept = calibrations.save((testbed, allowed), result.to_dict(), out_dir, now_ns=time.time_ns())
    text = json.dumps(result.to_dict(), indent=2) + "\n"
    write_results(out_dir, {RESULT_NAME: text.encode()}, allowed)
    console.result()
    console.result("\n".join(calibration_lines(result)))
    console.result(f"{'kept for plans:':16}{kept}")
    if result.control is not None and not result.control.is_found:
        return EXIT_NOT_FOUND
    return code


def calibration_lines(result: Calibration) -> list[str]:
    """Write a calibration, a fact per line."""
    lines = [
        f"A/A over {counted(result.n_rounds, 'round')}: B / A = {result.ratio:.4f}"
        f" [{result.ratio_low:.4f}, {result.ratio_high:.4f}]; sd of a round's ratio"
        f" {result.sd * 100:.2g} %, at most {result.sd_upper * 100:.2g} % (80 % bound).",
        f"False positives: {result.false_positives} of"
        f" {counted(result.small_studies, 'study', 'studies')} of {result.planned_rounds} rounds"
        f" differ (95 % interval {result.false_positive_low * 100:.0f} to"
        f" {result.false_positive_high * 100:.0f} %);"
        f" {result.false_positive_resampled * 100:.1f} % of resampled ones.",
        f"Noise floor: {result.planned_rounds} rounds cannot tell differences below"
        f" {result.noise_floor * 100:.3g} % from nothing.",
    ]
    if result.lag_one is not None and result.lag_one_chance is not None:
        verb = "remembers" if abs(result.lag_one) > result.lag_one_chance else "forgets"
        lines.append(
            f"Memory: lag-1 autocorrelation {result.lag_one:+.2f} (chance alone:"
            f" ±{result.lag_one_chance:.2f}); a trial {verb} the one before."
        )
    if result.position_ratio is not None and result.position_p is not None:
        lines.append(
            f"Place in the round: {(result.position_ratio - 1) * 100:+.3g} % from the first to the"
            f" last (p = {result.position_p:.2g})."
        )
    return [*lines, *_level_lines(result), *_control_lines(result.control)]


def _level_lines(result: Calibration) -> list[str]:
    """Where the noise is, and whether longer trials or more of them pay."""
    from iolab.library.power_reached import SAVING_MIN, length_text
    from iolab.stats.effect_words import percent

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
    if row is not None and row.saving >= SAVING_MIN:
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


def _planned_rounds(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 1000:
        raise IolabError(f"--for-rounds {text} is not a number from 2 to 1000", "as in 5")
    return int(text)


def _check_rounds(study: Study) -> None:
    """Refuse what could not be evaluated at its end; a budget admits what it admits."""
    if study.rounds is not None and study.rounds < ROUNDS_MIN:
        raise StudyError(
            f"{counted(study.rounds, 'round')} {is_or_are(study.rounds)} too few to measure noise",
            f"use at least {ROUNDS_MIN}, better {ROUNDS} (--rounds {ROUNDS})",
        )


def _study(arguments: argparse.Namespace) -> Study:
    labels: list[str] = list(_LABELS)
    if arguments.inject:
        labels.append(_delay_label(arguments.inject))
    if arguments.rounds is None and arguments.budget is None:
        arguments.rounds = str(ROUNDS)
    table = flags.overrides(arguments)
    if arguments.workload is None:
        if arguments.testbed is None:
            raise IolabError("--on is missing", "say where, as in --on loop:1g")
        whole = {"name": "aa", "factors": {"label": labels}, "workloads": [_PROBE], **table}
        return study_from_table(whole, flags.flag_source())
    source = flags.flag_source()
    if not Path(arguments.workload).is_file():
        raise StudyError(
            f"--workload {arguments.workload}: there is no such file",
            "name a study file; without it random reads of 4k are measured",
        )
    asked = load_study(Path(arguments.workload), table, override_source=source)
    first = [(factor.name, factor.levels[0]) for factor in asked.factors]
    return replace(
        asked,
        name=f"aa-{asked.name}"[:64],
        factors=(Factor("label", tuple(labels)),),
        settings=tuple(sorted([*asked.settings, *first])),
        workloads=asked.workloads[:1],
        compared_factor="label",
        baseline=_LABELS[0],
        looks=None,
        width=None,
        rounds=asked.rounds if arguments.rounds is not None else None,
        seed=asked.seed if arguments.seed is not None else None,
    )


def _delay_label(text: str) -> str:
    try:
        pause_ns = units.parse_duration_ns(text)
    except ValueError:
        raise StudyError(
            f"--inject {text}: this is not a pause",
            "write a number above 0 and its unit, as in --inject 20us or --inject 1ms",
        ) from None
    if pause_ns > PAUSE_MAX_NS:
        raise StudyError(
            f"--inject {text}: trials would consist of the pause and next to no operation",
            f"pause {units.format_duration(PAUSE_MAX_NS)} at most, as in --inject 20us",
        )
    return f"{DELAY_PREFIX}{units.format_duration(pause_ns)}"
