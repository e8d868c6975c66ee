"""``iolab aa``: the same treatment under two labels; how noisy, how honest is this testbed?"""

from __future__ import annotations

import argparse
from typing import Final

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.library.services import Services

NAME = "aa"
HELP = "compare a treatment with itself: noise and honesty of a testbed"

PLANNED_ROUNDS: Final = 5
EXIT_NOT_FOUND: Final = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    from iolab.library.noise_study import ROUNDS

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
    flags.leave_out_study_flags(parser)
    flags.add_factor_flags(parser)
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the A/A study, evaluate it, keep the result."""
    from iolab.cli.conduct import conduct
    from iolab.library.calibration_text import calibration_lines, length_lines
    from iolab.library.noise_study import NoiseRun, lacking, noise_study, planned_rounds

    n_planned = planned_rounds(arguments.for_rounds)
    study = noise_study(flags.study_words(arguments), arguments.inject)
    for lack in lacking(study, n_planned):
        console.note(f"iolab: note: {lack}")
    options = flags.run_options(arguments)
    if options.is_dry_run:
        return conduct(study, options, arguments, services, console)
    run = NoiseRun.prepared(study, options)
    code = conduct(study, run.options, arguments, services, console)
    result, by_length, kept = run.evaluated(n_planned, services)
    console.result()
    console.result("\n".join([*calibration_lines(result), *length_lines(by_length)]))
    console.result(f"{'kept for plans:':16}{kept}")
    if result.control is not None and not result.control.is_found:
        return EXIT_NOT_FOUND
    return code
