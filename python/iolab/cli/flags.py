"""Flags of studies and runs, and what they were given, in the words of the library."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from iolab import units
from iolab.cli.defaults import results_root

if TYPE_CHECKING:
    from iolab.library.conducted import RunOptions
    from iolab.library.flag_words import FactorFlag, StudyKeys, StudyWords
    from iolab.library.trace_words import TraceEvents

OVERWRITE: Final = "--overwrite"
DEFAULT_UNITS: Final = units.SYSTEMS[0]
_STUDY_FLAGS: Final = {
    "testbed": (
        "--on",
        "TESTBED",
        "where: loop[:SIZE], dir:PATH, device:PATH, sim:PROFILE, sim:STACK.toml or null: "
        "(further places: ,NAME=TESTBED)",
    ),
    "name": ("--name", "NAME", "name of the study"),
    "design": (
        "--design",
        "HOW",
        "pairs (alternating slices of milliseconds, not possible everywhere), adjacent (whole"
        " trials, compared levels next to each other) or trials",
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


class Declares(Protocol):
    """A parser, or a group of it."""

    @property
    def add_argument(self) -> Callable[..., argparse.Action]:
        """Declare an argument."""
        ...


def leave_out_study_flags(parser: argparse.ArgumentParser) -> None:
    """Let `study_keys` find nothing where a command does not declare a flag."""
    parser.set_defaults(**dict.fromkeys(_STUDY_FLAGS))


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
    group.add_argument(
        "--trace-events",
        metavar="LIST",
        help="the same, with these events: block or issue-complete, and layers of the kernel, "
        "separated by commas, such as syscalls,ext4,jbd2 (see `iolab trace record --help`)",
    )
    add_strict_flag(group)
    add_full_flag(group)
    add_quiet_flag(group)
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


def add_host_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of commands that run a study on other hosts."""
    group = parser.add_argument_group("measuring on other hosts")
    group.add_argument(
        "--hosts",
        metavar="HOST,...",
        help="run the study on each of these hosts over ssh, into DIR/HOST of --out DIR, round by "
        "round together, and judge them as one fleet; as ssh takes them, or HOST:PORT",
    )
    add_ssh_flag(group)


def add_ssh_flag(group: Declares) -> None:
    """Declare by which command hosts are reached."""
    group.add_argument(
        "--ssh", metavar="COMMAND", help="how hosts are reached, as in 'ssh -F FILE' (ssh)"
    )


def add_units_flag(group: Declares) -> None:
    """Declare in which units the report writes amounts of bytes."""
    group.add_argument(
        "--units",
        choices=units.SYSTEMS,
        default=DEFAULT_UNITS,
        help="bytes in the report: iec is KiB and MiB, si is kB and MB (iec)",
    )


def add_full_flag(parser: Declares) -> None:
    """Declare the flag that prints the whole answer."""
    parser.add_argument(
        "--full", action="store_true", help="print all of the answer, not only 25 lines"
    )


def add_quiet_flag(parser: Declares) -> None:
    """Declare the flag that leaves one sentence of the answer."""
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print the sentence of the answer only: no progress, no notes",
    )


def add_strict_flag(parser: Declares) -> None:
    """Declare the flag that gives an open answer an exit code of its own."""
    parser.add_argument(
        "--strict", action="store_true", help="exit 4 if undecided or if it depends"
    )


_REPLACED: Final = "a file that is there already and may be replaced (may be repeated)"


def add_overwrite_flag(parser: Declares, about: str = _REPLACED) -> None:
    """Declare the flag that names files of the user's own which may be replaced."""
    parser.add_argument(
        OVERWRITE,
        metavar="FILE",
        action="append",
        default=[],
        help=about,
    )


def add_factor_flags(parser: argparse.ArgumentParser) -> None:
    """One flag per factor; several levels make it a factor of the study, one level holds it."""
    from iolab.library.flag_words import factor_flags

    group = parser.add_argument_group(
        "factors", "levels are separated by commas; option texts by repeating the flag"
    )
    for row in factor_flags():
        _add_factor_flag(group, row)
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
        "'bonnie++ -s 64 -r 32 -f', 'fio job.fio' or 'filebench varmail', a workload file, or "
        "competing streams (`iolab workloads`); may be repeated, and the first one carries the "
        "verdict",
    )
    group.add_argument(
        "--vary",
        metavar="WORKLOAD:WORD=V1,V2",
        action="append",
        default=[],
        help="a word of the command of --workload at several levels, as in 'iozone:-r=4k,64k' or, "
        "of every job of fio, 'fio:bs=4k,64k', or a variable of a script, "
        "'filebench:nthreads=1,16'; 'iozone:-I=off,on' leaves it out and writes it",
    )
    group.add_argument(
        "--duration", metavar="TIME", help="how long the streams of --workload run (10s)"
    )


def study_keys(arguments: argparse.Namespace) -> StudyKeys:
    """Keys of a study file that were given as flags."""
    from iolab.library.flag_words import StudyKeys

    values = dict[str, str | int]()
    for key in _STUDY_FLAGS:
        value: str | None = getattr(arguments, key)
        if value is not None:
            is_number = key in _INTEGER_KEYS and value.strip().isdecimal()
            values[key] = int(value) if is_number else value
    return StudyKeys(values, {key: flag for key, (flag, _, _) in _STUDY_FLAGS.items()})


def study_words(arguments: argparse.Namespace) -> StudyWords:
    """The whole study that the flags of `add_study_flags` and `add_factor_flags` describe."""
    from iolab.library.flag_words import StudyWords, factor_flags

    given: dict[str, list[str | bool]] = {
        row.name: getattr(arguments, row.name) for row in factor_flags()
    }
    return StudyWords(
        study_keys(arguments),
        {name: levels for name, levels in given.items() if levels},
        knobs=tuple(arguments.knob),
        tests=arguments.test,
        workloads=tuple(arguments.workload),
        varied=tuple(arguments.vary),
        duration=arguments.duration,
    )


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """Options of a run, as the flags of `add_run_flags` say."""
    from iolab.library.conducted import RunOptions

    return RunOptions(
        out=Path(arguments.out) if arguments.out else None,
        root=results_root(),
        is_resumed=arguments.resume,
        is_dry_run=arguments.dry_run,
        trace=_trace(arguments),
        overwrite=tuple(arguments.overwrite),
        is_other_machine_allowed=arguments.allow_other_machine,
        image_dir=arguments.image_dir,
        allow_knobs_on=tuple(arguments.allow_knobs_on),
        erase_serial=arguments.erase_serial,
        precondition=arguments.precondition,
        precondition_round=arguments.precondition_round,
        accept_writes=arguments.accept_writes,
    )


def _trace(arguments: argparse.Namespace) -> TraceEvents | None:
    """Events to record: those of `--trace-events`, or all block events with `--trace`."""
    from iolab.library.trace_words import TraceEvents, typed_events

    if arguments.trace_events is not None:
        return typed_events(arguments.trace_events, "--trace-events")
    return TraceEvents() if arguments.trace else None


def _add_factor_flag(group: Declares, row: FactorFlag) -> None:
    text = row.about.replace("%", "%%")
    if row.opposites:
        opposite = f"the opposite of {row.flag}"
        for flags, value, told in ((row.flag,), True, text), (row.opposites, False, opposite):
            group.add_argument(
                *flags,
                action="append_const",
                const=value,
                help=told,
                dest=row.name,
                default=[],
            )
        return
    for flag, told in (row.flag, text), *((alias, argparse.SUPPRESS) for alias in row.aliases):
        group.add_argument(
            flag, action="append", metavar="LEVELS", help=told, dest=row.name, default=[]
        )
