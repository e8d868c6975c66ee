"""A study as a TOML text that loads to an equal study."""

from __future__ import annotations

import math

from iolab import units
from iolab.pattern import pattern
from iolab.study.model import (
    DialectWorkload,
    IozoneWorkload,
    Levels,
    MixedWorkload,
    Stream,
    Study,
    TestbedRequest,
    WorkloadPlan,
)
from iolab.study.stream_keys import TomlScalar, shown_keys

_BARE_KEY = pattern(r"[A-Za-z0-9_-]+")


def spec_toml(study: Study) -> str:
    """Render `study` so that :func:`iolab.study.load.parse_study` gives it back."""
    lines = [*_question(study), *_how(study)]
    if study.specification:
        rates = ", ".join(f'{name} = "{rate}B/s"' for name, rate in study.specification)
        lines.append(f"specification = {{ {rates} }}")
    if study.trace is not None:
        words = "true" if study.trace.is_usual else _list(study.trace.words)
        lines.append(f"trace = {words}")
    if study.budget_ns is not None:
        lines.append(f"budget = {_text(units.format_duration(study.budget_ns))}")
    own = {name for one in _dialects(study) for name in one.own_factors}
    written = [factor for factor in study.factors if factor.name not in own]
    if written:
        lines += ["", "[factors]"]
        lines += [f"{_key(factor.name)} = {_list(factor.levels)}" for factor in written]
    lines += ["", "[settings]", *_assignments(study.settings)]
    for workload in study.workloads:
        lines += _workload(workload, study)
    return "\n".join(lines) + "\n"


def _question(study: Study) -> list[str]:
    """Lines about the question, its testbed and its workloads."""
    lines = [
        f"name = {_text(study.name)}",
        f"testbed = {_testbed(study.testbed)}",
        f"margin = {_margin(study.margin)}",
    ]
    if study.compared_factor:
        lines.append(f"compare = {_text(study.compared_factor)}")
        lines.append(f"baseline = {_text(study.baseline)}")
    if study.command:
        lines.append(f"command = {_list(study.command)}")
    return lines


def _how(study: Study) -> list[str]:
    """Lines about what decides, and the number of repetitions."""
    texts = {"metric": study.metric, "metric_of": study.metric_of}
    lines = [f"{key} = {_text(value)}" for key, value in texts.items() if value is not None]
    counts = {"seed": study.seed, "rounds": study.rounds}
    lines += [f"{key} = {value}" for key, value in counts.items() if value is not None]
    if study.design is not None:
        lines.append(f"design = {_text(study.design)}")
    if study.looks is not None:
        lines.append(f"looks = {study.looks}")
    if study.width is not None:
        lines.append(f"width = {_margin(study.width)}")
    return lines


def _workload(workload: WorkloadPlan, study: Study) -> list[str]:
    """One entry; nothing for those rows of a command that the first of them stands for."""
    if isinstance(workload, DialectWorkload):
        same = [one for one in _dialects(study) if one.entry == workload.entry]
        return ["", "[[workloads]]", *_dialect(workload)] if same[0] == workload else []
    head = ["", "[[workloads]]", f"name = {_text(workload.name)}", f"kind = {_text(workload.kind)}"]
    return head + (_iozone(workload) if isinstance(workload, IozoneWorkload) else _mixed(workload))


def _dialects(study: Study) -> list[DialectWorkload]:
    return [one for one in study.workloads if isinstance(one, DialectWorkload)]


def _dialect(workload: DialectWorkload) -> list[str]:
    lines = [
        f"name = {_text(workload.entry)}",
        f"kind = {_text(workload.kind)}",
        f"dialect = {_text(workload.dialect)}",
    ]
    if workload.file:
        lines += [f"file = {_text(workload.file)}", f"text = {_text(workload.text)}"]
    else:
        lines.append(f"command = {_text(workload.text)}")
    if workload.vary:
        pairs = ", ".join(f"{_key(one.name)} = {_list(one.levels)}" for one in workload.vary)
        lines.append(f"vary = {{ {pairs} }}")
    if workload.recordings:
        tables = [
            f"{{ file = {_text(one.file)}, size_bytes = {one.size_bytes}, "
            f"digest = {_text(one.digest)} }}"
            for one in workload.recordings
        ]
        lines.append(f"recordings = [{', '.join(tables)}]")
    return [*lines, *_inline_settings(workload.settings)]


def _iozone(workload: IozoneWorkload) -> list[str]:
    return [
        f"tests = {_list(workload.tests)}",
        f"stride = {workload.stride}",
        *_inline_settings(workload.settings),
    ]


def _mixed(workload: MixedWorkload) -> list[str]:
    lines = [
        f"duration = {_text(units.format_duration(workload.duration_ns))}",
        *_inline_settings(workload.settings),
    ]
    for change in workload.changes:
        lines += ["", "[[workloads.changes]]", f"at = {_text(units.format_duration(change.at_ns))}"]
        lines += _assignments(change.knobs)
    for stream in workload.streams:
        lines += ["", "[[workloads.streams]]", *_stream(stream)]
    return lines


def workload_toml(workload: MixedWorkload) -> str:
    """Render one workload as the part of a study file that users can change."""
    lines = ["[[workloads]]", f"name = {_text(workload.name)}", f"kind = {_text(workload.kind)}"]
    return "\n".join([*lines, *_mixed(workload)]) + "\n"


def _stream(stream: Stream) -> list[str]:
    lines = [
        f"name = {_text(stream.name)}",
        f"direction = {_text(_direction(stream.read_share))}",
        f"pattern = {_text(stream.pattern)}",
        f"record_size = {_text(units.format_bytes(stream.io_size_bytes))}",
        f"depth = {stream.depth}",
        f"workers = {stream.workers}",
        f"file_size = {_text(units.format_bytes(stream.file_bytes))}",
    ]
    return [*lines, *(f"{name} = {_scalar(value)}" for name, value in shown_keys(stream))]


def _inline_settings(levels: Levels) -> list[str]:
    if not levels:
        return []
    pairs = ", ".join(f"{_key(name)} = {_text(level)}" for name, level in levels)
    return [f"settings = {{ {pairs} }}"]


def _assignments(levels: Levels) -> list[str]:
    return [f"{_key(name)} = {_text(level)}" for name, level in levels]


def _testbed(testbed: TestbedRequest) -> str:
    if not testbed.options:
        return _text(testbed.text)
    pairs: list[tuple[str, str]] = [("kind", testbed.kind)]
    if testbed.argument:
        pairs.append((testbed.row.argument_key, testbed.argument))
    pairs += testbed.options
    return "{ " + ", ".join(f"{key} = {_text(value)}" for key, value in pairs) + " }"


def _direction(read_share: float) -> str:
    words = {1.0: "read", 0.0: "write"}
    return words.get(read_share, _percent(read_share))


def _margin(share: float) -> str:
    """Return the margin as people write it, or as a number if that would not be exact."""
    percent = f"{share * 100:.6g}%"
    return _text(percent) if units.parse_share(percent) == share else repr(share)


def _percent(share: float) -> str:
    """Shortest percentage that parses back to the same number (it came from one)."""
    short = f"{share * 100:.6g}"
    exact = share * 100
    candidates = (exact, math.nextafter(exact, 0), math.nextafter(exact, 100))
    texts = (short, *map(repr, candidates))
    return next((text for text in texts if float(text) / 100 == share), short) + "%"


def _list(items: tuple[str, ...]) -> str:
    return "[" + ", ".join(_text(item) for item in items) + "]"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _scalar(value: TomlScalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Return a TOML basic string."""
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
