"""Studies in the words of the command line: levels of factors, knobs and workloads as typed.

A flag is a key of a study file (`docs/reference/study-file.md`) or a factor. The names of flags
stand in messages, so that whoever typed them finds them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.study import Study, public_study
from iolab.study.factors import FACTORS, FactorDefinition, FactorKind, Scope, find_factor
from iolab.study.load import load_study, study_from_table
from iolab.study.source import FlagSource
from iolab.study.typed_workloads import typed_workloads
from iolab.study.workloads import DEFAULT_TESTS
from iolab.wording import nearest

DEFAULT_RECORD_SIZES: Final = "4k,16k,64k"
_BUFFERED_FLAG: Final = "--buffered"
_FLAGS_OF_WORKLOADS: Final = {
    "tests": "--test",
    "preset": "--workload",
    "duration": "--duration",
    "command": "--workload",
    "file": "--workload",
    "workloads": "--workload",
    "vary": "--vary",
    "compare": "--compare",
}

Levels: TypeAlias = str | list[str | bool]
"""Levels of a factor as a study file gives them: one text, or a list."""
Entry: TypeAlias = dict[str, object]
"""One ``[[workloads]]`` table of a study file."""


@frozen
class FactorFlag:
    """The flag of a factor."""

    name: str
    """Of the factor."""
    flag: str
    opposites: tuple[str, ...]
    """Flags for its level false; none of a factor whose flag takes levels."""
    aliases: tuple[str, ...]
    about: str
    """Description: meaning, levels and default."""
    levels: tuple[str, ...] = ()
    """All levels that there are, in simulation too; none if they have no list."""


def factor_flags() -> tuple[FactorFlag, ...]:
    """Every factor that has a flag of its own; tunables of schedulers go through ``--knob``."""
    return tuple(_factor_flag(one) for one in FACTORS if one.has_own_flag)


def _factor_flag(definition: FactorDefinition) -> FactorFlag:
    text, opposites = definition.help, tuple[str, ...]()
    if definition.choices:
        text += f": {', '.join(definition.choices)}"
    if definition.former_choices:
        former = ", ".join(name for name, _ in definition.former_choices)
        text += f"; in simulation also {former}"
    if definition.kind is FactorKind.BOOL:
        opposites = ("--no-" + definition.flag.removeprefix("--"),)
        if definition.name == "direct":
            opposites = (_BUFFERED_FLAG, *opposites)
            text += " (the default); with both flags the two are compared"
    elif definition.default is not None:
        text += f" ({definition.default})"
    aliases = tuple("--" + alias.replace("_", "-") for alias in definition.aliases)
    levels = (*definition.choices, *(name for name, _ in definition.former_choices))
    return FactorFlag(definition.name, definition.flag, opposites, aliases, text, levels)


@frozen
class StudyKeys:
    """Top-level keys of a study file that were given as flags.

    Parameters
    ----------
    values : key to value; ``{"rounds": 5, "testbed": "loop:1g"}``.
    flags : key to the flag that sets it, for messages.
    """

    values: Mapping[str, str | int]
    flags: Mapping[str, str]

    @property
    def source(self) -> FlagSource:
        """Names of flags for messages, those of factors and workloads included."""
        factors = {
            one.name: one.flag if one.has_own_flag else f"--knob {one.name}" for one in FACTORS
        }
        return FlagSource({**self.flags, **factors, **_FLAGS_OF_WORKLOADS})

    def load(self, path: Path) -> Study:
        """Study of a file, with these keys in place of its own.

        Raises
        ------
        StudyError : the file or a key makes no study; names the place.
        """
        checked = load_study(path, dict(self.values), override_source=self.source)
        return public_study(checked, is_testbed_from_file="testbed" not in self.values)

    def checked(self, table: dict[str, object]) -> Study:
        """Study of a table as a study file has it.

        Raises
        ------
        StudyError : it is no study; names the flag.
        """
        return public_study(study_from_table(table, self.source))


@frozen
class StudyWords:
    """A whole study as flags describe it.

    Parameters
    ----------
    keys : top-level keys of a study file.
    levels : factor to what its flag was given, in order: texts, or truths of a switch.
    knobs : ``NAME=V1,V2``, any knob.
    tests : IOzone tests, separated by commas; None is the usual ones.
    workloads : commands, files or presets instead of IOzone's tests.
    varied : ``WORKLOAD:WORD=V1,V2``, words of their commands at several levels.
    duration : how long presets run.
    """

    keys: StudyKeys
    levels: Mapping[str, Sequence[str | bool]]
    knobs: Sequence[str] = ()
    tests: str | None = None
    workloads: Sequence[str] = ()
    varied: Sequence[str] = ()
    duration: str | None = None

    def study(self) -> Study:
        """The study.

        Raises
        ------
        IolabError, StudyError : the words make no study; names the flag.
        """
        return self.keys.checked(self.table())

    def table(self) -> dict[str, object]:
        """The study as a study file would give it."""
        factors, workloads = self.factors_and_workloads()
        varied = [name for name, levels in factors.items() if _has_levels(levels)]
        varied += [path for workload in workloads for path in _varied_of(workload)]
        named = (name.replace("_", "-").strip("-+") for name in varied)
        name = "-".join(filter(None, named)) or "compare"
        whole = {"name": name[:64], "factors": factors, "workloads": workloads}
        return {**whole, **self.keys.values}

    @property
    def has_pattern(self) -> bool:
        """Tell whether something was given that belongs to IOzone's tests: sizes, depth,
        workers.
        """
        return any(self.levels.get(row.name) for row in FACTORS if row.scope is Scope.PATTERN)

    def factors_and_workloads(self) -> tuple[dict[str, Levels], list[Entry]]:
        """The two tables of a study file that hold them.

        Raises
        ------
        IolabError : a word means nothing; names the flag.
        """
        factors = dict[str, Levels]()
        for definition in FACTORS:
            if levels := self._levels(definition):
                factors[definition.name] = levels
        for text in self.knobs:
            name, equals, given = text.partition("=")
            if not equals or not given:
                raise IolabError(
                    f"--knob {text} lacks a value", "as in --knob vm.dirty_ratio=10,20"
                )
            definition = find_factor(name)
            if definition.name in factors:
                raise IolabError(f"{definition.name} is given twice", "keep one of them")
            factors[definition.name] = given
        workloads = self._workloads(factors)
        if workloads[0].get("kind") == "iozone" and self.compares_record_sizes:
            factors["record_size"] = DEFAULT_RECORD_SIZES
        return factors, workloads

    @property
    def compares_record_sizes(self) -> bool:
        """Tell whether record sizes are compared because nobody said what is.

        Of a scheduler, a file system or another knob or layer that is named with one level it is
        asked how it does, not how record sizes do under it: it is held, and nothing is compared.
        """
        if self.workloads:
            return False
        named = [row for row in FACTORS if self.levels.get(row.name)]
        if any(row.name == "record_size" for row in named) or self.knobs:
            return False
        if any(_has_levels(self._levels(row)) for row in named):
            return False
        return not any(row.scope is Scope.STACK or row.is_knob for row in named)

    @property
    def example_of_levels(self) -> str:
        """An option with several levels that the workload follows."""
        if not self.workloads:
            return "--record-size 4k,64k"
        entry = typed_workloads(self.workloads, "--workload")[0]
        if "command" in entry:
            return f"--vary '{entry['name']}:WORD=LEVEL,LEVEL' or --scheduler none,mq-deadline"
        return "--scheduler none,mq-deadline"

    def _levels(self, definition: FactorDefinition) -> Levels:
        levels = list(self.levels.get(definition.name, ()))
        is_list = definition.kind in (FactorKind.OPTION_LIST, FactorKind.BOOL)
        return levels if is_list else ",".join(map(str, levels))

    def _workloads(self, factors: dict[str, Levels]) -> list[Entry]:
        """IOzone's tests, or the named workloads; takes sizes of their files from `factors`."""
        if not self.workloads:
            return [self._tests()]
        if self.tests is not None:
            raise IolabError("--test and --workload exclude each other", "give one of them")
        entries = typed_workloads(self.workloads, "--workload")
        presets = [entry for entry in entries if "preset" in entry]
        if presets:
            _take_sizes(presets, factors)
        if self.duration is not None:
            _take_duration(presets, self.duration)
        for text in self.varied:
            _take_varied(entries, text)
        return entries

    def _tests(self) -> Entry:
        if self.duration is not None:
            raise IolabError("--duration belongs to --workload", "IOzone's tests end by themselves")
        if self.varied:
            raise IolabError(
                f"--vary {self.varied[0]}: there is no command whose word it could be",
                "write --workload 'iozone ...', or give an option several levels",
            )
        tests = list(DEFAULT_TESTS) if self.tests is None else self.tests
        return {"name": "iozone", "kind": "iozone", "tests": tests}


def _take_sizes(presets: list[Entry], factors: dict[str, Levels]) -> None:
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


def _take_duration(presets: list[Entry], duration: str) -> None:
    if not presets:
        raise IolabError(
            f"--duration {duration}: the workload says itself when it ends",
            "leave it out, or name a preset of `iolab workloads`",
        )
    for entry in presets:
        entry["duration"] = duration


def _take_varied(entries: list[Entry], text: str) -> None:
    """Add the levels of ``WORKLOAD:WORD=V1,V2`` to the entry that it names."""
    owner, _, rest = text.partition(":")
    path, equals, levels = rest.rpartition("=")
    if not path or not equals:
        raise IolabError(f"--vary {text} is not complete", "as in --vary 'iozone:-r=4k,64k'")
    names = [str(entry["name"]) for entry in entries]
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
    varied = _varied_of(entry)
    if path in varied:
        raise IolabError(f"--vary {text}: {path} is varied twice", "name all levels at once")
    entry["vary"] = {**varied, path: levels.split(",")}


def _varied_of(entry: Entry) -> dict[str, list[str]]:
    """Words of a command that are varied, with their levels."""
    varied = entry.get("vary")
    return varied if isinstance(varied, dict) else {}


def _has_levels(levels: Levels) -> bool:
    return len(levels) > 1 if isinstance(levels, list) else "," in levels or ".." in levels
