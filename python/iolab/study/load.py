"""From a study file, or the equivalent flags, to a checked :class:`Study`.

Both ways build one nested table (`docs/design/0003-from-study-to-verdict.md`) and share one
reading of it; a :class:`~iolab.study.source.Source` says where each value stood.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

from iolab import units
from iolab.errors import StudyError
from iolab.frozen import replace
from iolab.regular_file import refuse_endless
from iolab.study.dialects import own_factors
from iolab.study.factors import (
    FactorDefinition,
    FactorKind,
    factor_on,
    find_factor,
    is_factor,
)
from iolab.study.foreign_files import command_for
from iolab.study.metric_names import parse_metric
from iolab.study.model import (
    PILOT_ROUNDS,
    DialectWorkload,
    Factor,
    Levels,
    MixedWorkload,
    Study,
    TestbedRequest,
    WorkloadPlan,
)
from iolab.study.presets import find_preset
from iolab.study.reader import Reader, shown_value
from iolab.study.settings import parse_name, read_settings
from iolab.study.source import FileSource, OverriddenSource, Source
from iolab.study.stream_keys import RESERVED_STREAM_NAME
from iolab.study.testbed_words import PLACES, testbed_request
from iolab.study.testbeds import TESTBED_KINDS, testbed_kind
from iolab.study.trace_words import TraceEvents, trace_events
from iolab.study.treatment import is_varied_by
from iolab.study.typed_workloads import CONTENTION
from iolab.study.validity import BUDGET_NS, DESIGNS_ASKED, PAIRS
from iolab.study.workloads import read_workloads
from iolab.wording import counted, nearest

DEFAULT_MARGIN: Final = 0.05
DEFAULT_ROUNDS: Final = 5
MAX_ROUNDS: Final = 1000
LOOKS_MAX: Final = 5
LOOK_ROUNDS_MIN: Final = 3
"""Fewer rounds between two looks do not tell a spread."""
STUDY_BYTES_MAX: Final = 1 << 20
_DIRECTIONS: Final = ("read", "write")
_STUDY_KEYS: Final = (
    "name",
    "testbed",
    "seed",
    "design",
    "rounds",
    "budget",
    "margin",
    "looks",
    "width",
    "specification",
    "compare",
    "baseline",
    "metric",
    "metric_of",
    "trace",
    "factors",
    "settings",
    "workloads",
    "command",
)
_TESTBED_ARGUMENTS: Final = {kind.name: kind.argument_key for kind in TESTBED_KINDS}
"""Separator between a testbed and its places, and between these."""
_TESTBED_OPTIONS: Final = (
    PLACES,
    "image_dir",
    "device_count",
    "logical_block_bytes",
    "allow_knobs_on",
    "digest",
    "allow_destructive",
    "precondition",
    "precondition_round",
    "in_place",
    "devices",
    "identity",
)


def load_study(
    path: Path,
    overrides: Mapping[str, object] | None = None,
    *,
    override_source: Source | None = None,
) -> Study:
    """The study in a TOML file.

    Parameters
    ----------
    path : the file.
    overrides : top-level keys that replace those of the file.
    override_source : names the place of the overrides in messages.

    Raises
    ------
    StudyError : the file cannot be read or does not describe a study; names file, line and key.
    """
    try:
        text = _read_text(path)
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file", _nearby_studies(path)) from None
    except IsADirectoryError:
        raise StudyError(f"{path} is a directory", _studies_in(path)) from None
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}", "check the file") from None
    return parse_study(text, str(path), overrides, override_source=override_source)


def parse_study(
    text: str,
    file_name: str = "study.toml",
    overrides: Mapping[str, object] | None = None,
    *,
    override_source: Source | None = None,
) -> Study:
    """The study in a TOML text; `file_name` is for messages, the rest as in :func:`load_study`."""
    table, source = _parsed(text, file_name)
    if overrides and override_source:
        return study_from_table(
            {**table, **overrides}, OverriddenSource(source, override_source, frozenset(overrides))
        )
    return study_from_table(table, source)


def _read_text(path: Path) -> str:
    """Text of a study file, with or without a byte order mark; refuses what cannot be one."""
    refuse_endless(path)
    with path.open("rb") as file:
        content = file.read(STUDY_BYTES_MAX + 1)
    if len(content) > STUDY_BYTES_MAX:
        raise StudyError(
            f"{path} is larger than {units.format_bytes(STUDY_BYTES_MAX)}, which no study is",
            "name a study file",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(
            f"{path} is not a text: byte {error.start + 1} is not UTF-8",
            "name a study file, or save it as UTF-8",
        ) from None


def _parsed(text: str, file_name: str) -> tuple[dict[str, object], Source]:
    try:
        return tomllib.loads(text), FileSource(file_name, text)
    except RecursionError:
        raise StudyError(f"{file_name}: brackets are nested too deeply", "remove some") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = f", line {place[1]}, column {place[2]}" if place else ""
        reason = re.sub(r"\s*\(at .*\)", "", str(error))
        hint = command_for(text, file_name) or 'texts need quotes, as in "4k"'
        raise StudyError(f"{file_name}{where}: this is not TOML: {reason}", hint) from None
    except ValueError:  # Python reads no number of more than some thousand digits.
        raise StudyError(f"{file_name}: a number is too long", "write it shorter") from None


def study_from_table(table: Mapping[str, object], source: Source) -> Study:
    """The study in a nested table, as a file or flags give it."""
    reader = Reader(table, source)
    reader.only(_STUDY_KEYS)
    testbed = reader.read("testbed", _parse_testbed) if "testbed" in table else None
    if testbed is not None:
        reader = replace(reader, find=partial(factor_on, testbed.kind))
    factors = _read_factors(reader.table("factors").flat())
    settings_reader = reader.table("settings").flat()
    settings = dict(read_settings(settings_reader))
    for factor in factors:
        if factor.name in settings:
            settings_reader.refuse(
                factor.name, f"{factor.name} is both varied and held", "keep one of them"
            )
    settings.update(
        {factor.name: factor.levels[0] for factor in factors if len(factor.levels) == 1}
    )
    command = reader.read_or("command", _parse_command, ())
    workloads = read_workloads(reader.tables("workloads"), is_line=bool(command))
    varied = _with_own(reader, factors, workloads)
    if not workloads:
        reader.refuse(None, "there is no workload", "add [[workloads]] with kind and tests")
    _refuse_unfollowed(reader, settings, workloads)
    compared = _read_compared(reader, factors, varied, workloads)
    metric, metric_of = _read_metric(reader, workloads[0])
    rounds = reader.read_or("rounds", _parse_rounds, None)
    budget_ns = reader.read_or("budget", units.parse_duration_ns, None)
    design = reader.read_or("design", _parse_design, None)
    if design == PAIRS and rounds is None and budget_ns is None:
        budget_ns = BUDGET_NS
    return Study(
        name=reader.read_or("name", parse_name, "study"),
        testbed=testbed or reader.read("testbed", _parse_testbed),
        factors=varied,
        settings=tuple(sorted(settings.items())),
        workloads=workloads,
        compared_factor=compared.name if compared else "",
        baseline=_read_baseline(reader, compared) if compared else "",
        margin=reader.read_or("margin", units.parse_share, DEFAULT_MARGIN),
        rounds=DEFAULT_ROUNDS if rounds is None and budget_ns is None else rounds,
        budget_ns=budget_ns,
        seed=reader.read_or("seed", _parse_seed, None),
        looks=_read_looks(reader, rounds),
        width=_read_width(reader, rounds, budget_ns),
        specification=_read_specification(reader.table("specification")),
        metric=metric,
        metric_of=metric_of,
        trace=reader.read_or("trace", _parse_trace, None),
        design=design,
        command=command,
    )


def _parse_trace(value: object) -> TraceEvents | None:
    if isinstance(value, bool):
        return TraceEvents() if value else None
    if not isinstance(value, list) or not value:
        raise ValueError(f"{shown_value(value)} is neither true nor false nor a list of events")
    words = [str(word) for word in cast("list[object]", value)]
    return trace_events(words, "trace")


def _with_own(
    reader: Reader, factors: tuple[Factor, ...], workloads: tuple[WorkloadPlan, ...]
) -> tuple[Factor, ...]:
    """Factors with several levels, and those that workloads bring along."""
    own = own_factors(workloads)
    known = {factor.name for factor in factors}
    for factor in own:
        if factor.name in known:
            reader.refuse(
                "factors",
                f"{factor.name} is varied by the command of a workload already",
                "leave it out, or let the command measure one",
            )
    return (*(factor for factor in factors if len(factor.levels) > 1), *own)


def _refuse_unfollowed(
    reader: Reader, settings: dict[str, str], workloads: tuple[WorkloadPlan, ...]
) -> None:
    """Refuse a setting of which commands and files say themselves what it is."""
    if not all(isinstance(workload, DialectWorkload) for workload in workloads):
        return
    for name in settings:
        if not any(is_varied_by(workload, name) for workload in workloads):
            is_factor_row = name in reader.table("factors").flat().values
            reader.table("factors" if is_factor_row else "settings").refuse(
                name,
                f"{name} cannot be chosen for '{workloads[0].name}', which says it itself",
                "write it into the command or the file, or leave it out",
            )


def _parse_design(value: object) -> str:
    if value in DESIGNS_ASKED:
        return str(value)
    known = ", ".join(DESIGNS_ASKED)
    raise ValueError(f"'{value}' is no design{nearest(str(value), DESIGNS_ASKED)}; known: {known}")


def _parse_command(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    words = tuple(item for item in items if isinstance(item, str))
    if not items or len(words) < len(items):
        raise ValueError("a command line is a list of texts: the dialect and its words")
    return words


def _read_metric(reader: Reader, workload: WorkloadPlan) -> tuple[str | None, str | None]:
    """Metric of the verdict: as asked, or as the first workload's preset says."""
    first = reader.tables("workloads")[0].values
    preset = find_preset(first["preset"]) if first.get("kind") == CONTENTION else None
    own = (None, None) if preset is None else (preset.metric, preset.metric_of)
    if "metric" not in reader.values and "metric_of" not in reader.values:
        return own
    if isinstance(workload, MixedWorkload):
        parts = [*(stream.name for stream in workload.streams), RESERVED_STREAM_NAME]
    elif isinstance(workload, DialectWorkload):
        parts = list(workload.operations)
    else:
        parts = list(workload.tests)

    def parse_part(value: object) -> str:
        if value in parts:
            return str(value)
        raise ValueError(
            f"'{value}' is no part of '{workload.name}'{nearest(str(value), parts)}; its parts are "
            + ", ".join(parts)
        )

    return (
        reader.read_or("metric", parse_metric, own[0]),
        reader.read_or("metric_of", parse_part, None if "metric" in reader.values else own[1]),
    )


def _read_factors(reader: Reader) -> tuple[Factor, ...]:
    factors: dict[str, Factor] = {}
    for key, value in reader.values.items():
        definition = reader.parsed(key, key, reader.find)
        if definition.name in factors:
            reader.refuse(key, f"{definition.name} is given twice", "keep one of them")
        levels = list[str]()
        for item in _items(value, definition):
            levels.extend(reader.parsed(key, item, definition.parse))
        if not levels:
            reader.refuse(key, f"{key} has no level", "name at least two")
        repeated = next((level for level, count in Counter(levels).items() if count > 1), None)
        if repeated is not None:
            reader.refuse(key, f"level '{repeated}' is given twice", "rounds repeat it; remove one")
        factors[definition.name] = Factor(definition.name, tuple(levels))
    return tuple(factors.values())


def _items(value: object, definition: FactorDefinition) -> list[object]:
    """Levels as typed: a list, or one text with commas where commas separate levels."""
    if isinstance(value, list):
        return cast("list[object]", value)
    if isinstance(value, str) and definition.kind is not FactorKind.OPTION_LIST:
        return [part.strip() for part in value.split(",") if part.strip()]
    return [value]


def _read_compared(
    reader: Reader,
    named_factors: tuple[Factor, ...],
    factors: tuple[Factor, ...],
    workloads: tuple[WorkloadPlan, ...],
) -> Factor | None:
    """Factor whose levels are ranked, of the varied `factors`; None if nothing is varied.

    A file may name one of the factors although it has one level only.
    """
    known = factors or named_factors
    by_name = {factor.name: factor for factor in known}

    def parse(value: object) -> Factor:
        name = str(value) if value in by_name else find_factor(str(value)).name
        if name not in by_name:
            raise ValueError(
                f"'{value}' is not varied{nearest(str(value), by_name)}; varied are "
                + ", ".join(by_name)
            )
        return by_name[name]

    if not factors:
        _read_unvaried(reader, parse, named_factors)
        return None
    named = [factor for factor in factors if not _is_scale(factor.name)]
    compared = reader.read_or("compare", parse, (named or list(factors))[0])
    for factor in factors:
        if not any(is_varied_by(workload, factor.name) for workload in workloads):
            place = reader.source.where((*reader.path, "factors", factor.name))
            raise StudyError(
                f"{place}: no workload follows {factor.name}", "leave it out: it varies nothing"
            )
    if not is_varied_by(workloads[0], compared.name):
        reader.refuse(
            "workloads",
            f"the first workload, '{workloads[0].name}', carries the verdict but does not "
            f"follow {compared.name}",
            "put another one first, or choose another factor with compare",
        )
    return compared


def _is_scale(name: str) -> bool:
    """Tell whether levels of a factor are sizes or counts; those of a varied word are not known."""
    return is_factor(name) and find_factor(name).is_numeric


def _read_unvaried(
    reader: Reader, parse: Callable[[object], Factor], named: tuple[Factor, ...]
) -> None:
    """Check the words about a comparison where no factor has several levels."""
    if "compare" in reader.values and not named:
        reader.refuse("compare", "nothing is varied", "give a factor several levels")
    if "compare" in reader.values:
        _read_baseline(reader, reader.read("compare", parse))
    elif "baseline" in reader.values and named:
        _read_baseline(reader, named[0])
    elif "baseline" in reader.values:
        reader.refuse(
            "baseline", "nothing is compared, so that there is no baseline", "vary a factor"
        )


def _read_baseline(reader: Reader, compared: Factor) -> str:
    def parse(value: object) -> str:
        known = value in compared.levels or not is_factor(compared.name)
        level = str(value) if known else reader.find(compared.name).parse(value)[0]
        if level not in compared.levels:
            raise ValueError(
                f"'{value}' is not a level of {compared.name}{nearest(level, compared.levels)}; "
                f"levels are {', '.join(compared.levels)}"
            )
        return level

    return reader.read_or("baseline", parse, compared.levels[0])


def _read_looks(reader: Reader, rounds: int | None) -> int | None:
    looks = reader.read_or("looks", _parse_looks, None)
    if looks is not None and (rounds is None or rounds < looks * LOOK_ROUNDS_MIN):
        reader.refuse(
            "looks",
            f"{looks} looks need rounds to look between, at least {LOOK_ROUNDS_MIN} for each",
            f"give {reader.source.written('rounds', str(looks * LOOK_ROUNDS_MIN))}, or leave looks"
            " out",
        )
    return looks


def _read_width(reader: Reader, rounds: int | None, budget_ns: int | None) -> float | None:
    width = reader.read_or("width", units.parse_share, None)
    if width is None:
        return None
    if "looks" in reader.values:
        reader.refuse(
            "width", "looks and width are two ways to end a study", "leave one of them out"
        )
    if rounds is None and budget_ns is None:
        reader.refuse(
            "width",
            "a width alone may take for ever",
            f"say what is too much: {reader.source.written('budget', '1h')}, or rounds",
        )
    if rounds is not None and rounds <= PILOT_ROUNDS:
        reader.refuse(
            "width",
            f"{counted(rounds, 'round')} would leave nothing after the pilot of {PILOT_ROUNDS}",
            "give more rounds (they are the most that may be run), or leave width out",
        )
    return width


def _read_specification(reader: Reader) -> tuple[tuple[str, int], ...]:
    reader.only(_DIRECTIONS)
    return tuple(
        (name, reader.read(name, units.parse_rate)) for name in _DIRECTIONS if name in reader.values
    )


def _parse_looks(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= LOOKS_MAX:
        return value
    raise ValueError(f"'{value}' is not a number of looks from 2 to {LOOKS_MAX}")


def _parse_rounds(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ROUNDS:
        return value
    raise ValueError(f"'{value}' is not a number of rounds from 1 to {MAX_ROUNDS}")


def _parse_seed(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return value
    raise ValueError(f"'{value}' is not a seed: a whole number from 0 to 2**63 - 1")


def _parse_testbed(value: object) -> TestbedRequest:
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("a testbed has no NUL in its name")
        request = testbed_request(value.strip())
        _refuse_missing(request.kind, request.argument)
        return request
    if not isinstance(value, dict):
        raise ValueError(
            "a testbed is a text such as loop:1g, dir:PATH, device:PATH or sim:PROFILE, or a table"
        )
    table = cast("dict[str, object]", value)
    kind = str(table.get("kind", ""))
    kind = "dir" if kind == "directory" else kind
    argument_key = _TESTBED_ARGUMENTS.get(kind)
    if argument_key is None:
        raise ValueError(
            f"'{kind}' is not a kind of testbed{nearest(kind, _TESTBED_ARGUMENTS)}; "
            f"known are {', '.join(_TESTBED_ARGUMENTS)}"
        )
    known = ("kind", argument_key, *_TESTBED_OPTIONS)
    for key in table:
        if key not in known:
            raise ValueError(f"a testbed has no '{key}'{nearest(key, known)}")
    places = table.get(PLACES)
    if isinstance(places, dict):
        named = cast("dict[str, object]", places)
        table[PLACES] = [f"{name}={_option_text(name, text)}" for name, text in named.items()]
    options = {key: _option_text(key, table[key]) for key in _TESTBED_OPTIONS if key in table}
    argument = _option_text(argument_key, table.get(argument_key, ""))
    _refuse_missing(kind, argument)
    return TestbedRequest(kind, argument, _sorted(options))


def _refuse_missing(kind: str, argument: str) -> None:
    """Refuse a testbed without the argument that it needs."""
    if not argument and testbed_kind(kind).needed:
        raise ValueError(testbed_kind(kind).needed)


def _option_text(key: str, value: object) -> str:
    """A text, a whole number, or a list of texts, as one text."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise ValueError(f"{key} = {shown_value(value)} is neither a text nor a whole number")
        if "\0" in str(item):
            raise ValueError(f"{key} holds a NUL, which no name does")
    return ",".join(map(str, items))


def _sorted(table: dict[str, str]) -> Levels:
    return tuple(sorted(table.items()))


def _studies_in(folder: Path) -> str:
    """Studies to name instead of a directory: only what is there."""
    names = sorted(entry.name for entry in folder.glob("*.toml"))
    if names:
        others = f" (there are {len(names)})" if len(names) > 1 else ""
        return f"name the study file, as in {folder / names[0]}{others}"
    return "no study file (.toml) lies in it: name a file, or use `iolab compare` with flags"


def _nearby_studies(path: Path) -> str:
    folder = path.parent
    names = [entry.name for entry in folder.glob("*.toml")] if folder.is_dir() else []
    guess = nearest(path.name, names).removeprefix("; ")
    return guess or "name a study file, or use `iolab compare` with flags"
