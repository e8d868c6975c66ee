"""Flags of a study, generated from the factor table, and the table they amount to."""

from __future__ import annotations

import argparse
from typing import Any, Final

from iolab import units
from iolab.errors import IolabError
from iolab.store.users_files import FLAG
from iolab.study.factors import (
    FACTORS,
    FactorDefinition,
    FactorKind,
    Scope,
    find_factor,
)
from iolab.study.source import FlagSource
from iolab.study.typed_workloads import typed_workloads
from iolab.study.workloads import DEFAULT_TESTS
from iolab.wording import nearest

DEFAULT_RECORD_SIZES: Final = "4k,16k,64k"
DEFAULT_UNITS: Final = units.SYSTEMS[0]
_BUFFERED_FLAG: Final = "--buffered"
_STUDY_FLAGS: Final = {
    "testbed": (
        "--on",
        "TESTBED",
        "where: loop[:SIZE], dir:PATH, device:PATH, sim:PROFILE, sim:STACK.toml or null:",
    ),
    "name": ("--name", "NAME", "name of the study"),
    "design": (
        "--design",
        "HOW",
        "pairs (alternating slices of milliseconds) or trials; pairs is not possible everywhere",
    ),
    "rounds": ("--rounds", "N", "complete rounds (5 if there is no budget either)"),
    "budget": ("--budget", "TIME", "stop before a round that would not fit, as in 30m"),
    "margin": ("--margin", "SHARE", "smallest difference that matters (5%%)"),
    "looks": ("--looks", "N", "end early at one of N equal looks if all is decided (2 to 5)"),
    "width": ("--width", "SHARE", "end when intervals are this narrow, as in 2%%: +-2 %%"),
    "compare": ("--compare", "FACTOR", "factor that the verdict ranks"),
    "baseline": ("--baseline", "LEVEL", "level that ratios are formed against (the first)"),
    "metric": ("--metric", "METRIC", "metric that carries the verdict, as in p99 or fairness"),
    "metric_of": ("--metric-of", "PART", "stream or test whose metric it is (all of them)"),
    "seed": ("--seed", "N", "seed of the order (drawn and stored)"),
}
_INTEGER_KEYS: Final = ("rounds", "seed", "looks")


def study_keys() -> tuple[str, ...]:
    """Names under which `overrides` looks for flags."""
    return tuple(_STUDY_FLAGS)


def add_study_flags(parser: argparse.ArgumentParser, *, is_testbed_required: bool) -> None:
    """Flags that a study file has as top-level keys."""
    group = parser.add_argument_group("study")
    for key, (flag, metavar, text) in _STUDY_FLAGS.items():
        is_required = key == "testbed" and is_testbed_required
        group.add_argument(flag, dest=key, metavar=metavar, help=text, required=is_required)


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that runs trials."""
    group = parser.add_argument_group("running")
    group.add_argument("--out", metavar="DIR", help="results (iolab-out/NAME-N)")
    group.add_argument("--resume", action="store_true", help="continue what --out holds")
    add_overwrite_flag(group)
    group.add_argument(
        "--allow-other-machine",
        action="store_true",
        help="continue although kernel or processor changed; the report says so",
    )
    group.add_argument("--dry-run", action="store_true", help="show every action, do nothing")
    group.add_argument(
        "--trace",
        action="store_true",
        help="record block events during each trial: its stage times become metrics (root)",
    )
    group.add_argument("--strict", action="store_true", help="exit 4 if undecided or if it depends")
    add_units_flag(group)
    group.add_argument("--image-dir", metavar="DIR", help="where loop images go (/var/tmp)")
    group.add_argument(
        "--erase-serial",
        metavar="SERIAL",
        help="confirm that the device with this serial is erased (device:PATH)",
    )
    group.add_argument(
        "--precondition",
        metavar="HOW",
        help="write a device before the first trial: none, fill, fill2x, random (none)",
    )
    group.add_argument(
        "--precondition-round",
        metavar="TIME",
        help="length of a round of random writes until they are steady (60s)",
    )
    group.add_argument(
        "--accept-writes",
        metavar="SIZE",
        help="agree to write so much to a device; the study stops there (device:PATH)",
    )
    group.add_argument(
        "--allow-knobs-on",
        metavar="DEV",
        action="append",
        default=[],
        help="device of the running system whose knobs may be switched",
    )


def add_units_flag(group: Any) -> None:
    """Declare in which units the report writes amounts of bytes."""
    group.add_argument(
        "--units",
        choices=units.SYSTEMS,
        default=DEFAULT_UNITS,
        help="bytes in the report: iec is KiB and MiB, si is kB and MB (iec)",
    )


_REPLACED: Final = "a file that may be replaced although iolab did not make it (may be repeated)"


def add_overwrite_flag(parser: Any, about: str = _REPLACED) -> None:
    """Declare the flag that names files of the user's own which may be replaced."""
    parser.add_argument(
        FLAG,
        metavar="FILE",
        action="append",
        default=[],
        help=about,
    )


def add_factor_flags(parser: argparse.ArgumentParser) -> None:
    """One flag per factor; several levels make it a factor of the study, one level holds it."""
    group = parser.add_argument_group(
        "factors", "levels are separated by commas; option texts by repeating the flag"
    )
    for definition in FACTORS:
        if definition.has_own_flag:
            _add_factor_flag(group, definition)
    group.add_argument(
        "--knob",
        metavar="NAME=V1,V2",
        action="append",
        default=[],
        help="any knob, as in vm.dirty_ratio=10,20 or bfq.slice_idle=0,8",
    )
    group.add_argument("--test", metavar="TESTS", help="IOzone tests, run in its own order")
    group.add_argument(
        "--workload",
        metavar="WHAT",
        action="append",
        default=[],
        help="instead of IOzone's tests: a command such as 'iozone -s 64m -i 0 -i 1', "
        "'bonnie++ -s 64 -r 32 -f' or 'fio job.fio', a workload file, or competing streams (`iolab "
        "workloads`); may be repeated, and the first one carries the verdict",
    )
    group.add_argument(
        "--vary",
        metavar="WORKLOAD:WORD=V1,V2",
        action="append",
        default=[],
        help="a word of the command of --workload at several levels, as in 'iozone:-r=4k,64k' or, "
        "of every job of fio, 'fio:bs=4k,64k'; 'iozone:-I=off,on' leaves it out and writes it",
    )
    group.add_argument(
        "--duration", metavar="TIME", help="how long the streams of --workload run (10s)"
    )


def overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """Top-level keys that were given as flags."""
    table = dict[str, Any]()
    for key in _STUDY_FLAGS:
        value = getattr(arguments, key)
        if value is not None:
            is_number = key in _INTEGER_KEYS and value.strip().isdecimal()
            table[key] = int(value) if is_number else value
    return table


def study_table(arguments: argparse.Namespace) -> dict[str, Any]:
    """The whole study that flags describe, as a study file would give it."""
    factors = dict[str, Any]()
    for definition in FACTORS:
        if levels := _levels(arguments, definition):
            factors[definition.name] = levels
    for text in arguments.knob:
        name, equals, levels = text.partition("=")
        if not equals or not levels:
            raise IolabError(f"--knob {text} lacks a value", "as in --knob vm.dirty_ratio=10,20")
        definition = find_factor(name)
        if definition.name in factors:
            raise IolabError(f"{definition.name} is given twice", "keep one of them")
        factors[definition.name] = levels
    workloads = _workloads(arguments, factors)
    if workloads[0].get("kind") == "iozone" and compares_record_sizes(arguments):
        factors["record_size"] = DEFAULT_RECORD_SIZES
    varied = [name for name, levels in factors.items() if _has_levels(levels)]
    varied += [path for workload in workloads for path in workload.get("vary", {})]
    named = (name.replace("_", "-").strip("-+") for name in varied)
    name = "-".join(filter(None, named)) or "compare"
    return {
        "name": name[:64],
        "factors": factors,
        "workloads": workloads,
        **overrides(arguments),
    }


def compares_record_sizes(arguments: argparse.Namespace) -> bool:
    """Whether record sizes are compared because nobody said what is.

    Of a scheduler, a file system or another knob or layer that is named with one level it is asked
    how it does, not how record sizes do under it: it is held, and nothing is compared.
    """
    if arguments.workload:
        return False
    named = {row.name: row for row in FACTORS if getattr(arguments, row.name, None)}
    if "record_size" in named or arguments.knob:
        return False
    if any(_has_levels(_levels(arguments, row)) for row in named.values()):
        return False
    return not any(row.scope is Scope.STACK or row.is_knob for row in named.values())


def example_of_levels(arguments: argparse.Namespace) -> str:
    """An option with several levels that the workload follows."""
    if not arguments.workload:
        return "--record-size 4k,64k"
    entry = typed_workloads(arguments.workload, "--workload")[0]
    if "command" in entry:
        return f"--vary '{entry['name']}:WORD=LEVEL,LEVEL' or --scheduler none,mq-deadline"
    return "--scheduler none,mq-deadline"


def _levels(arguments: argparse.Namespace, definition: FactorDefinition) -> Any:
    """Levels as a study file would give them: a list, or one text."""
    levels: list[Any] = getattr(arguments, definition.name, [])
    is_list = definition.kind in (FactorKind.OPTION_LIST, FactorKind.BOOL)
    return levels if is_list else ",".join(levels)


def _workloads(arguments: argparse.Namespace, factors: dict[str, Any]) -> list[dict[str, Any]]:
    """IOzone's tests, or what `--workload` names, each as an entry of a study."""
    if not arguments.workload:
        if arguments.duration is not None:
            raise IolabError("--duration belongs to --workload", "IOzone's tests end by themselves")
        if arguments.vary:
            raise IolabError(
                f"--vary {arguments.vary[0]}: there is no command whose word it could be",
                "write --workload 'iozone ...', or give an option several levels",
            )
        tests = list(DEFAULT_TESTS) if arguments.test is None else arguments.test
        return [{"name": "iozone", "kind": "iozone", "tests": tests}]
    if arguments.test is not None:
        raise IolabError("--test and --workload exclude each other", "give one of them")
    entries = typed_workloads(arguments.workload, "--workload")
    presets = [entry for entry in entries if "preset" in entry]
    if presets:
        _take_sizes(presets, factors)
    if arguments.duration is not None:
        _take_duration(presets, arguments.duration)
    for text in arguments.vary:
        _take_varied(entries, text)
    return entries


def _take_sizes(presets: list[dict[str, Any]], factors: dict[str, Any]) -> None:
    """Move the size of files from `factors` to presets; refuse other patterns."""
    for name in list(factors):
        if find_factor(name).scope is not Scope.PATTERN:
            continue
        preset = presets[0]["preset"]
        if name != "file_size":
            raise IolabError(
                f"{find_factor(name).flag} belongs to IOzone's tests: the streams of "
                f"{preset} have their own",
                f"`iolab workloads {preset}` prints them as a study file to change",
            )
        if _has_levels(factors[name]):
            raise IolabError(
                "--file-size of --workload is one size", "use a study file to compare several"
            )
        size = factors.pop(name)
        for entry in presets:
            entry["file_size"] = size


def _take_duration(presets: list[dict[str, Any]], duration: str) -> None:
    if not presets:
        raise IolabError(
            f"--duration {duration}: the workload says itself when it ends",
            "leave it out, or name a preset of `iolab workloads`",
        )
    for entry in presets:
        entry["duration"] = duration


def _take_varied(entries: list[dict[str, Any]], text: str) -> None:
    """Add the levels of ``WORKLOAD:WORD=V1,V2`` to the entry that it names."""
    owner, _, rest = text.partition(":")
    path, equals, levels = rest.rpartition("=")
    if not path or not equals:
        raise IolabError(f"--vary {text} is not complete", "as in --vary 'iozone:-r=4k,64k'")
    names = [entry["name"] for entry in entries]
    if owner not in names:
        raise IolabError(
            f"--vary {text}: there is no workload '{owner}'{nearest(owner, names)}",
            f"{'it is' if len(names) == 1 else 'they are'} called {', '.join(names)}",
        )
    entry = entries[names.index(owner)]
    if "preset" in entry:
        raise IolabError(
            f"--vary {text}: {owner} is a preset, which has no words",
            f"`iolab workloads {entry['preset']}` prints it as a study file to change",
        )
    varied = entry.setdefault("vary", {})
    if path in varied:
        raise IolabError(f"--vary {text}: {path} is varied twice", "name all levels at once")
    varied[path] = levels.split(",")


def flag_source() -> FlagSource:
    """Names of the flags for messages."""
    names = {key: flag for key, (flag, _, _) in _STUDY_FLAGS.items()}
    names |= {
        definition.name: definition.flag if definition.has_own_flag else f"--knob {definition.name}"
        for definition in FACTORS
    }
    own = {"tests": "--test", "preset": "--workload", "duration": "--duration"}
    own |= {"command": "--workload", "file": "--workload", "workloads": "--workload"}
    own |= {"vary": "--vary", "compare": "--compare"}
    return FlagSource({**names, **own})


def _add_factor_flag(group: Any, definition: FactorDefinition) -> None:
    text = definition.help.replace("%", "%%")
    if definition.choices:
        text += f": {', '.join(definition.choices)}"
    if definition.former_choices:
        former = ", ".join(name for name, _ in definition.former_choices)
        text += f"; in simulation also {former}"
    if definition.default is not None and definition.kind is not FactorKind.BOOL:
        text += f" ({definition.default})"
    common: dict[str, Any] = {"dest": definition.name, "default": []}
    if definition.kind is FactorKind.BOOL:
        no_flags = ["--no-" + definition.flag.removeprefix("--")]
        if definition.name == "direct":
            no_flags = [_BUFFERED_FLAG, *no_flags]
            text += "; this is the default, both flags compare both"
        group.add_argument(definition.flag, action="append_const", const=True, help=text, **common)
        group.add_argument(
            *no_flags, action="append_const", const=False, help="the opposite", **common
        )
        return
    common |= {"action": "append", "metavar": "LEVELS"}
    group.add_argument(definition.flag, help=text, **common)
    for alias in definition.aliases:
        group.add_argument("--" + alias.replace("_", "-"), help=argparse.SUPPRESS, **common)


def _has_levels(value: object) -> bool:
    if isinstance(value, list):
        return len(value) > 1  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, str) and ("," in value or ".." in value)
