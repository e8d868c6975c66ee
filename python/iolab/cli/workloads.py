"""``iolab workloads``: the named contention workloads, and each as a study file to change."""

from __future__ import annotations

import argparse

from iolab.cli.console import Console
from iolab.library.services import Services

NAME = "workloads"
HELP = "list workloads in which streams compete, or print one as a study file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this one as a study file")
    parser.add_argument("--duration", metavar="TIME", default="10s", help="how long it runs (10s)")
    parser.add_argument("--file-size", metavar="SIZE", default="64m", help="of each file (64m)")
    parser.add_argument(
        "--on", metavar="TESTBED", default="loop:2g", help="testbed of the study (loop:2g)"
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the list, or one workload."""
    from iolab.library.preset_list import preset_study, presets

    del services
    if arguments.name is None:
        for preset in presets():
            console.result(f"{preset.name:18}{preset.about}")
            console.result(f"{'':18}{preset.question}")
        console.result()
        console.result("iolab compare --on loop:2g --scheduler none,bfq --workload NAME runs one;")
        console.result("iolab workloads NAME prints it as a study file.")
        return 0
    asked = (arguments.name, arguments.on, arguments.duration, arguments.file_size)
    console.result(preset_study(*asked).rstrip("\n"))
    return 0
