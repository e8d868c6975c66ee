"""``iolab workloads``: the named contention workloads, and each as a study file to change."""

from __future__ import annotations

import argparse

from iolab import units
from iolab.cli.console import Console
from iolab.errors import StudyError
from iolab.library.services import Services
from iolab.study.load import testbed_request
from iolab.study.presets import PRESETS, Preset, find_preset, preset_workload
from iolab.study.render import workload_toml
from iolab.testbed.model import make_testbed

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
    del services
    if arguments.name is None:
        for preset in PRESETS:
            console.result(f"{preset.name:18}{preset.about}")
            console.result(f"{'':18}{preset.question}")
        console.result()
        console.result("iolab compare --on loop:2g --scheduler none,bfq --workload NAME runs one;")
        console.result("iolab workloads NAME prints it as a study file.")
        return 0
    try:
        preset = find_preset(arguments.name)
        duration_ns = units.parse_duration_ns(arguments.duration)
        file_bytes = units.parse_bytes(arguments.file_size)
        request = testbed_request(arguments.on)
        make_testbed(request.kind, request.argument, dict(request.options))
    except ValueError as error:
        raise StudyError(str(error), "see `iolab workloads --help`") from None
    console.result(study_text(preset, arguments.on, duration_ns, file_bytes).rstrip("\n"))
    return 0


def study_text(preset: Preset, testbed: str, duration_ns: int, file_bytes: int) -> str:
    """Study file in which `preset` compares schedulers."""
    workload = preset_workload(preset, duration_ns, file_bytes)
    head = [
        f"# {preset.about}",
        f"# {preset.question}",
        f'name = "{preset.name}"',
        f'testbed = "{testbed}"',
        "rounds = 8",
        f'metric = "{preset.metric}"',
        f'metric_of = "{preset.metric_of}"',
        "",
        "[factors]",
        'scheduler = ["none", "mq-deadline", "bfq", "kyber"]',
        "",
        "[settings]",
        'driver_queue_depth = "4"',
        "",
    ]
    return "\n".join(head) + "\n" + workload_toml(workload)
