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
import tomllib
from collections.abc import Sequence
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
from iolab.study.factors import DELAY_PREFIX, FACTORS, Scope, find_factor
from iolab.study.load import load_study, study_from_table
from iolab.study.model import Factor, MixedWorkload, Study
from iolab.study.slice_lengths import length_text
from iolab.study.validity import PAIRS
from iolab.testbed.model import make_testbed
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.stats.calibration import Calibration, Control
    from iolab.store.rows import StudyData

NAME = "aa"
HELP = "the same treatment under two labels: noise and honesty of a testbed"

ROUNDS: Final = 20
ROUNDS_MIN: Final = 4
"""Fewer tell no spread; `iolab.stats.calibration` refuses them as well."""
PLANNED_ROUNDS: Final = 5
PAUSE_MAX_NS: Final = 100_000_000
"""The longest pause after an operation: a trial of two seconds still has twenty of them."""
STUDIES_WANTED: Final = 4
"""Fewer studies of the planned size say nothing of how often one errs."""
PROBED_RECORD_SIZE: Final = "4k"
BAR_WIDTH: Final = 40
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
        "--design",
        metavar="HOW",
        help="pairs (alternating slices, with the noise by length of slice) or trials",
    )
    group.add_argument("--rounds", metavar="N", help=f"pairs of trials ({ROUNDS})")
    group.add_argument("--budget", metavar="TIME", help="stop before a round that would not fit")
    group.add_argument("--margin", metavar="SHARE", help="smallest difference that matters (5%%)")
    group.add_argument("--metric", metavar="METRIC", help="metric whose noise is measured")
    group.add_argument("--metric-of", metavar="PART", help="stream or test whose metric it is")
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
    flags.add_factor_flags(parser)
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the A/A study, evaluate it, keep the result."""
    planned = _planned_rounds(arguments.for_rounds)
    study = _study(arguments)
    _check_rounds(study)
    for lack in lacking(study, planned):
        console.note(f"iolab: note: {lack}")
    options, shown = run_options(arguments), AnswerForm.of(arguments)
    if options.is_dry_run:
        return conduct(study, options, shown, services, console)
    choose = outputs.latest_directory if options.is_resumed else outputs.fresh_directory
    out_dir = options.out or choose(study.name)
    allowed = Allowed.of(options.overwrite)
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    reports = outputs.reports_in(out_dir)
    design = study.design or ""
    kept_in = calibrations.file_of(testbed, design)
    allowed.refuse_useless([*reports, out_dir / RESULT_NAME, kept_in])
    options = replace(
        options,
        out=out_dir,
        overwrite=tuple(str(path) for path in reports if allowed.has(path)),
        continued_by="the same command and --resume",
    )
    refuse_foreign_results(out_dir, [RESULT_NAME], allowed)
    calibrations.check(testbed, allowed, design)
    code = conduct(study, options, shown, services, console)
    with Store.open_reader(out_dir / STORE_NAME) as store:
        data = store.load_data()
    from iolab.stats.calibration import calibrate

    result = calibrate(data, services.judge(data), planned_rounds=planned)  # type: ignore[arg-type]
    kept = calibrations.save(
        (testbed, allowed), result.to_dict(), out_dir, now_ns=time.time_ns(), design=design
    )
    text = json.dumps(result.to_dict(), indent=2) + "\n"
    write_results(out_dir, {RESULT_NAME: text.encode()}, allowed)
    console.result()
    console.result("\n".join([*calibration_lines(result), *length_lines(data)]))
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


def length_lines(data: StudyData) -> list[str]:
    """Draw the standard error after three minutes by length of slice; nothing without slices."""
    from iolab.stats.slices import error_by_length

    labels = {trial.trial_id: trial.levels.get("label") for trial in data.trials}
    equal = [row for row in data.slices if labels.get(row.trial_id) in _LABELS]
    rows = error_by_length(replace(data, slices=equal))
    if not rows:
        return []
    most = max(row.error for row in rows)
    lines = ["Where the noise lives: standard error after 3 min, by length of slice."]
    for row in rows:
        bar = "#" * max(1, round(BAR_WIDTH * row.error / most))
        lines.append(f"  {length_text(row.length_ns):>7}  {row.error * 100:6.2g} %  {bar}")
    return lines


def _level_lines(result: Calibration) -> list[str]:
    """Where the noise is, and whether longer trials or more of them pay."""
    from iolab.library.power_reached import SAVING_MIN
    from iolab.library.power_reached import length_text as trial_text
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
        lines.append(f"Length of trials: {trial_text(row)}.")
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
            f"{counted(study.rounds, 'round')} would be too few to know a noise",
            f"at least {ROUNDS_MIN} are needed, {ROUNDS} are better: --rounds {ROUNDS}",
        )


def _study(arguments: argparse.Namespace) -> Study:
    labels: list[str] = list(_LABELS)
    if arguments.inject:
        labels.append(_delay_label(arguments.inject))
    if arguments.rounds is None and arguments.budget is None and arguments.design != PAIRS:
        arguments.rounds = str(ROUNDS)
    named: list[str] = arguments.workload
    if len(named) > 1:
        raise StudyError(f"an A/A study has one workload, not {len(named)}", "give --workload once")
    if named and _is_study(Path(named[0])):
        return _of_study(Path(named[0]), arguments, labels)
    if arguments.testbed is None:
        raise IolabError("--on is missing", "say where, as in --on loop:1g")
    table = flags.study_table(arguments)
    factors: dict[str, Any] = table["factors"]
    is_probe = not named and arguments.test is None and not _pattern_flags(arguments)
    if is_probe:
        factors.pop("record_size", None)
        table["workloads"] = [_PROBE]
    elif not arguments.record_size and "record_size" in factors:
        factors["record_size"] = PROBED_RECORD_SIZE
    whole = {
        **table,
        "name": "aa",
        "factors": {"label": labels},
        "settings": {name: _only(name, levels) for name, levels in factors.items()},
    }
    return study_from_table(whole, flags.flag_source())


def _is_study(path: Path) -> bool:
    """Whether a file describes a study, and not only a workload."""
    try:
        return "workloads" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _of_study(path: Path, arguments: argparse.Namespace, labels: Sequence[str]) -> Study:
    """The first workload of a study file, at the first level of each factor."""
    given = [row.flag for row in FACTORS if row.has_own_flag and getattr(arguments, row.name, None)]
    given += ["--knob"] if arguments.knob else []
    if given:
        raise StudyError(
            f"{given[0]}: {path} is a study, which says its levels itself",
            "change them there, or name a workload: `iolab workloads`",
        )
    asked = load_study(path, flags.overrides(arguments), override_source=flags.flag_source())
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


def _pattern_flags(arguments: argparse.Namespace) -> list[str]:
    """Flags given that belong to IOzone's tests: sizes, depth, workers."""
    rows = [row for row in FACTORS if row.scope is Scope.PATTERN]
    return [row.flag for row in rows if getattr(arguments, row.name, None)]


def _only(name: str, levels: object) -> object:
    """The one level of a flag.

    Raises
    ------
    StudyError : it has several.
    """
    several = flags.split_levels(levels)
    if len(several) == 1:
        return several[0]
    raise StudyError(
        f"{find_factor(name).flag} has {len(several)} levels, an A/A study one treatment",
        "give one level; `iolab compare` compares several",
    )


def lacking(study: Study, planned_rounds: int) -> list[str]:
    """What this A/A study will not show, and how to have it: told before it runs."""
    found: list[str] = []
    if len(study.factors[0].levels) == len(_LABELS):
        is_stream = isinstance(study.workloads[0], MixedWorkload)
        how = "--inject 20us plants one" if is_stream else "a workload of streams can plant one"
        found.append(f"nothing shows that a difference would be found: {how}")
    if study.rounds is not None and study.rounds < STUDIES_WANTED * planned_rounds:
        n = study.rounds // planned_rounds
        found.append(
            f"{counted(study.rounds, 'round')} make {counted(n, 'study', 'studies')} of"
            f" {planned_rounds}, which tell little of false positives:"
            f" --rounds {STUDIES_WANTED * planned_rounds}"
        )
    if study.design != PAIRS:
        found.append(
            "it measures whole trials; the noise of alternating slices is another: --design pairs"
        )
    return found


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
