"""``iolab compare``: a whole study from flags."""

from __future__ import annotations

import argparse

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.frozen import replace
from iolab.library.services import Services

NAME = "compare"
HELP = "compare schedulers, file systems, options or record sizes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    flags.add_study_flags(parser, is_testbed_required=True)
    flags.add_factor_flags(parser)
    flags.add_run_flags(parser)
    flags.add_host_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the study that the flags describe."""
    from iolab.cli.conduct import conduct
    from iolab.library.flag_words import DEFAULT_RECORD_SIZES

    words = flags.study_words(arguments)
    study, note = words.study(), ""
    if words.compares_record_sizes:
        sizes = " and ".join(DEFAULT_RECORD_SIZES.replace(",", ", ").rsplit(", ", 1))
        note = (
            f"no option has several levels: record sizes {sizes} are compared: "
            "--record-size names others, or one"
        )
    elif not study.is_comparison:
        note = (
            "nothing is compared; to compare, give an option several levels, as in "
            f"{words.example_of_levels}"
        )
    options = replace(flags.run_options(arguments), note=note)
    return conduct(study, options, arguments, services, console)
