"""Every list of the code base, and what each of its rows must have beside it.

To add a thing is one file and one row. This table says which page and which test the row must
have, so that a row without them cannot be merged. `{row}` stands for the row's name in file names
(snake_case), `{page}` for the same with hyphens.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Registry:
    """One list: the file it stands in, how to find it, what its rows are called and need.

    ``begin`` finds the opening bracket of the list; ``row`` takes its names, in group 1, out of
    the text between the brackets. Each entry of ``companions`` is a file pattern (of which one
    must exist; `` or `` separates alternatives) and, after a ``::``, a regular expression that one
    such file must contain.
    """

    name: str
    file: str
    begin: str
    row: str
    companions: tuple[str, ...]

    def module_of(self, row: str) -> str:
        """Name of the module that holds a row's code."""
        return _snake(row)


# `Row = "name"` or `Row = "name" => ...`, one per line.
_NAMED_ROW = r"^\s*[A-Z]\w*\s*=\s*\"([^\"]+)\""

ENGINES = Registry(
    name="engine",
    file="crates/iolab-real/src/engine/mod.rs",
    begin=r"engines!\s*\{",
    row=_NAMED_ROW,
    companions=(
        "crates/iolab-real/src/engine/{row}.rs",
        "docs/reference/engines.md::`{name}`",
        "crates/iolab-real/tests/*.rs::Engine::ALL|{name}",
    ),
)

AGENT_KNOBS = Registry(
    name="knob",
    file="crates/iolab-agent/src/knob/mod.rs",
    begin=r"knobs!\s*\{",
    row=_NAMED_ROW,
    companions=(
        "crates/iolab-agent/src/knob/{row}.rs",
        "docs/reference/knobs.md::`{name}`",
        "crates/iolab-agent/src/knob/tests.rs::ALL|{name}",
    ),
)

CHARTS = Registry(
    name="chart",
    file="python/iolab/report/charts/__init__.py",
    begin=r"CHARTS:[^=]*=\s*\(",
    row=r"^\s*ChartRow\(\s*\"(\w+)\"",
    companions=(
        "python/iolab/report/charts/{row}.py",
        "docs/reference/charts.md::`{name}`",
        "tests/report/*.py::CHARTS|{row}",
    ),
)

METRICS = Registry(
    name="metric",
    file="python/iolab/stats/metrics/__init__.py",
    begin=r"METRICS:[^=]*=\s*\(",
    row=r"^\s*\w+_metric\(\s*\"(\w+)\"",
    companions=(
        "docs/reference/metrics.md::`{name}`",
        "tests/**/*.py::METRICS|{row}",
    ),
)

METHODS = Registry(
    name="method",
    file="python/iolab/stats/methods/__init__.py",
    begin=r"METHODS:[^=]*=\s*\(",
    row=r"^\s*Method\(\s*\"(\w+)\"",
    companions=(
        "python/iolab/stats/methods/{row}.py",
        "docs/reference/methods.md::`{name}`",
        "tests/stats/*.py::{row}",
    ),
)

_FINDING_COMPANIONS = (
    "docs/reference/findings.md::`{name}`",
    "docs/explanation/honesty.md::`{name}`",
    "tests/report/test_findings.py::FINDINGS",
)

JUDGED_FINDINGS = Registry(
    name="finding",
    file="python/iolab/stats/findings/judged.py",
    begin=r"JUDGED:[^=]*=\s*\(",
    row=r"^\s*FindingKind\(\s*\"(\w+)\"",
    companions=_FINDING_COMPANIONS,
)

RECORDED_FINDINGS = Registry(
    name="recorded finding",
    file="python/iolab/stats/findings/recorded.py",
    begin=r"RECORDED:[^=]*=\s*\(",
    row=r"^\s*FindingKind\(\s*\"(\w+)\"",
    companions=_FINDING_COMPANIONS,
)

COMMANDS = Registry(
    name="command",
    file="python/iolab/cli/main.py",
    begin=r"COMMANDS:[^=]*=\s*\(",
    row=r"\(\s*\"\w+\",\s*\"(\w+)\"",
    companions=(
        "python/iolab/cli/{row}.py",
        "docs/reference/cli.md::## `iolab {name}`",
        "tests/cli/*.py::{name}",
    ),
)

SCHEDULERS = Registry(
    name="scheduler",
    file="crates/iolab-sim/src/sched/list.rs",
    begin=r"schedulers!\s*\{",
    row=_NAMED_ROW,
    companions=(
        "crates/iolab-sim/src/sched/{row}.rs or crates/iolab-sim/src/sched/{row}/mod.rs",
        "docs/reference/schedulers/{name}.md",
        "tests/golden/scheduler/scheduler-scenarios.yaml::scheduler: {name}",
    ),
)

VOLUMES = Registry(
    name="volume",
    file="crates/iolab-sim/src/volume/list.rs",
    begin=r"volumes!\s*\{",
    row=_NAMED_ROW,
    companions=(
        "crates/iolab-sim/src/volume/{row}.rs",
        "docs/reference/volumes/{name}.md",
        "crates/iolab-sim/src/volume/tests/*.rs::VolumeKind::",
    ),
)

DEVICES = Registry(
    name="device",
    file="crates/iolab-sim/src/device/list.rs",
    begin=r"devices!\s*\{",
    row=_NAMED_ROW,
    companions=(
        "crates/iolab-sim/src/device/{row}.rs or crates/iolab-sim/src/device/{row}/mod.rs",
        "docs/reference/devices/{name}.md",
        'crates/iolab-sim/profiles/*.toml::kind = "{name}"',
    ),
)

REQUIREMENTS = Registry(
    name="requirement",
    file="python/iolab/study/requirements/__init__.py",
    begin=r"REQUIREMENTS:[^=]*=\s*\(",
    row=r"^\s*([A-Z_]+),$",
    companions=(
        "python/iolab/study/requirements/{row}.py",
        "docs/reference/requirements.md::iolab check --for",
        "tests/**/*.py::REQUIREMENTS",
    ),
)

ADVICE = Registry(
    name="advice",
    file="python/iolab/advise/__init__.py",
    begin=r"FILE_SYSTEMS:[^=]*=\s*\(",
    row=r"^\s*([A-Z0-9_]+),$",
    companions=(
        "python/iolab/advise/{row}.py",
        "docs/how-to/tune-a-file-system.md::iolab advise",
        "tests/advise/*.py::FILE_SYSTEMS",
    ),
)

REGISTRIES: tuple[Registry, ...] = (
    ENGINES,
    AGENT_KNOBS,
    CHARTS,
    METRICS,
    METHODS,
    JUDGED_FINDINGS,
    RECORDED_FINDINGS,
    COMMANDS,
    REQUIREMENTS,
    ADVICE,
    SCHEDULERS,
    VOLUMES,
    DEVICES,
)

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def rows(registry: Registry, text: str) -> list[tuple[str, int]] | None:
    """Names of the rows with their lines; None if the list is not there."""
    begin = re.search(registry.begin, text)
    if begin is None:
        return None
    opener = text[begin.end() - 1]
    depth, end = 0, begin.end() - 1
    for end in range(begin.end() - 1, len(text)):
        depth += (text[end] == opener) - (text[end] == _CLOSING[opener])
        if depth == 0:
            break
    return [
        (match[1], text.count("\n", 0, match.start(1)) + 1)
        for match in re.compile(registry.row, re.MULTILINE).finditer(text, begin.end(), end + 1)
    ]


def missing_companions(
    root: Path, files: list[str], registries: tuple[Registry, ...] | None = None
) -> Iterator[tuple[str, int, str]]:
    """Rows that lack something, as (path, line, message)."""
    for registry in REGISTRIES if registries is None else registries:
        path = root / registry.file
        found = rows(registry, path.read_text(encoding="utf-8")) if path.is_file() else None
        if not found:
            yield registry.file, 1, f"the list of {registry.name} is not here or has no rows"
            continue
        for row, line in found:
            for companion in registry.companions:
                if not _exists(root, files, _fill(companion, row)):
                    wanted = _fill(companion, row)
                    yield registry.file, line, f"{registry.name} `{row}` lacks {wanted}"


def _snake(row: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", row).lower().replace("-", "_").replace(".", "_")


def _fill(companion: str, row: str) -> str:
    return companion.replace("{row}", _snake(row)).replace("{name}", row.rstrip("_"))


@cache
def _ending_with(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Expression for the paths whose last parts match one of the patterns; `*` is within a part."""
    ends = "|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns)
    return re.compile(rf"(?:^|/)(?:{ends})$")


def _exists(root: Path, files: list[str], companion: str) -> bool:
    pattern, _, contents = companion.partition("::")
    expression = _ending_with(tuple(pattern.split(" or ")))
    matching = [name for name in files if expression.search(name)]
    if not contents:
        return bool(matching)
    return any(re.search(contents, (root / name).read_text(encoding="utf-8")) for name in matching)
