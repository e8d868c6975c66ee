"""Named workloads in which streams compete, each as a study file to change."""

from __future__ import annotations

from iolab import units
from iolab.errors import StudyError
from iolab.study.presets import PRESETS, Preset, find_preset, preset_workload
from iolab.study.render import workload_toml
from iolab.study.testbed_words import testbed_request
from iolab.testbed.model import make_testbed


def presets() -> tuple[Preset, ...]:
    """Every preset: name, subject, and the question that it answers."""
    return PRESETS


def preset_study(name: str, testbed: str, duration: str, file_size: str) -> str:
    """Study file in which a preset compares schedulers.

    Parameters
    ----------
    name : of the preset.
    testbed : as ``loop:2g``.
    duration, file_size : as typed: ``10s``, ``64m``.

    Raises
    ------
    StudyError : there is no such preset or testbed, or a value is none.
    """
    try:
        preset = find_preset(name)
        duration_ns, file_bytes = units.parse_duration_ns(duration), units.parse_bytes(file_size)
        request = testbed_request(testbed)
        make_testbed(request.kind, request.argument, dict(request.options))
    except ValueError as error:
        raise StudyError(str(error), "see `iolab workloads --help`") from None
    return study_text(preset, testbed, duration_ns, file_bytes)


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
