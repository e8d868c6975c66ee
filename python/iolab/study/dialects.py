"""Workloads in the words of other programs, or in a file: read once, kept as data.

A :class:`Dialect` is one row: how its words or its file become a *plan*, which the compiled half
makes (`crates/iolab-dialect`). A plan has rows, each measured at once; rows that differ in sizes
or workers alone are one workload at levels of these factors, other rows are workloads of their own.
A word of a command (``-r``), or a ``${name}`` in a file, may be varied; then there is one plan for
each combination of levels.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, cast

from iolab import units
from iolab.errors import DialectError, IolabError, StudyError
from iolab.frozen import frozen, replace
from iolab.json_text import read_json, write_json
from iolab.pattern import pattern
from iolab.study.entry_plan import EntryPlan, PlannedRow, plan_of_command, plan_of_file
from iolab.study.model import DialectRow, DialectWorkload, Factor, Levels
from iolab.study.recordings import recordings_in
from iolab.study.words import without_options

if TYPE_CHECKING:
    from iolab.protocol import CommandPlan
    from iolab.study.entry_plan import DialectCore
    from iolab.study.model import WorkloadPlan

_Made = TypeVar("_Made")
TEXT_BYTES_MAX: Final = 256 << 10
_NO_NAME: Final = pattern(r"[^A-Za-z0-9.+-]+")
_NAME_MAX: Final = 60
"""A number may follow."""
_JOB, _SHOW_WORDS = "--name", "--showcmd"
"""The word that begins a job, and that which prints the words without the file that they name."""
_PROPERTY_FILE = "-P"
"""The word before a file of properties."""
_ELSEWHERE: Final = "--on dir:."
"""Words that tell a command that its files are not those of the working directory."""
_SET: Final = "--set"
"""The word that gives a variable of a script a value."""
PRESENT, ABSENT = "on", "off"
"""Levels of a word that has no value."""
_SHORT: Final = 2
"""Length of an option whose value may be attached: ``-r4k``."""
_SIZES: Final = ("record_size", "file_size", "workers")
"""Factors by which rows of a table differ; the first that does is compared."""
_OURS: Final[Mapping[str, object]] = {
    **{"on": None, "out": None, "repeat": 0, "overwrite": [], "testbed": []},
    "is_resumed": False,
    "is_traced": False,
    "trace_events": None,
}
"""Options that iolab adds to a command line, and their values where they are not given."""
_OF_ONE_RUN: Final = ("--out", "--overwrite")
_OURS_WITH_VALUE: Final = (
    *("--on", "--repeat", "--rounds", "--out", "--image-dir", "--erase-serial", "--overwrite"),
    "--trace-events",
)
_OURS_WITHOUT: Final = ("--resume", "--trace", "--help")
_FSYNC: Final = {
    **{"none": "none", "after": "after", "timed": "timed", "every": "after"},
    "between": "timed",
}
_FLUSHES: Final = {"every": "1"}


@frozen
class Dialect:
    """A language in which a workload is described."""

    name: str
    make_plan: Callable[[DialectCore, str, str], EntryPlan]
    """Plan of (core, name of the text for messages, command or text of a file)."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of its files; empty: it is described by a command."""
    is_seeded_by_round: bool = False
    """True if random numbers are those of the round; a command's are its own."""
    direct_hint: str = 'write path = "direct" where files are opened, or use --on loop:1g'
    """Advice on bypassing the page cache; `{flags}` are those of `direct_flags` not typed."""
    direct_flags: tuple[str, ...] = ()
    streams_hint: str = ""
    """Advice on leaving out the streams of the C library; empty: it has none, or no way."""
    file_hint: str = "name one that exists"
    """Advice where a file that is read is missing."""
    is_told_by_records: bool = False
    """True if its results are made of whole records, not of sums per worker."""
    has_jobs: bool = False
    """True if its words belong to the jobs that they follow, and may stand in a file of jobs."""
    looks_around: bool = False
    """True if what it does depends on the files that are there: a study's are on its testbed."""
    reads_devices: bool = False
    """True if a device may stand in the place of a file that is only read."""
    has_properties: bool = False
    """True if a name without a dash is a property, which ``-p`` sets and files (``-P``) hold."""
    has_variables: bool = False
    """True if its words name a script with variables, which ``--set NAME=VALUE`` changes."""
    switches: tuple[str, ...] = ()
    """Its own options of names that iolab has as well: alone, or with 0 or 1, they are its own."""
    stopped_code: int = 0
    """Exit code of the original when it is interrupted, after partial results; 0: ours."""
    keeps_files: bool = False
    """True if its files are what it is run for; a file that cannot be made stops no other."""

    def way_past_the_cache(self, words: Sequence[str]) -> str:
        """Way to make a command of these words bypass the page cache."""
        letters = {flag[-1] for flag in self.direct_flags}
        typed = {letter for word in words if set(word[1:]) <= letters for letter in word[1:]}
        missing = [flag for flag in self.direct_flags if flag[-1] not in typed]
        if self.direct_flags and not missing:
            return self.direct_hint.partition(", or ")[2]
        return self.direct_hint.format(flags=" ".join(missing))

    @property
    def reads_files(self) -> bool:
        """Tell whether its words may name a file whose content can be written as words."""
        return self.has_jobs or self.has_variables or self.has_properties

    @property
    def has_file(self) -> bool:
        """Tell whether it is described by a file, else by a command."""
        return bool(self.suffixes)


def _plan_of_words(dialect: str) -> Callable[[DialectCore, str, str], EntryPlan]:
    def make(core: DialectCore, subject: str, text: str) -> EntryPlan:
        del subject
        return plan_of_command(core, dialect, words_of(text))

    return make


DIALECTS: Final[tuple[Dialect, ...]] = (
    Dialect(
        "iozone",
        _plan_of_words("iozone"),
        direct_hint="add {flags}, or use --on loop:1g",
        direct_flags=("-I",),
        streams_hint="select tests with -i 0 to -i 5",
        file_hint="name one that exists, make it with -i 0 -w -f FILE, or add -i 0",
    ),
    Dialect(
        "bonnie++",
        _plan_of_words("bonnie++"),
        direct_hint="add {flags} for what is direct, or use --on loop:8g",
        direct_flags=("-D", "-f"),
    ),
    Dialect("mkfile", _plan_of_words("mkfile"), direct_hint="use --on loop:1g", keeps_files=True),
    Dialect(
        "fio",
        _plan_of_words("fio"),
        direct_hint="write direct=1, or use --on loop:1g",
        file_hint="name one that exists, or a size that a job makes it with",
        is_told_by_records=True,
        has_jobs=True,
        reads_devices=True,
        looks_around=True,
        stopped_code=128,
        switches=("--overwrite",),
    ),
    Dialect(
        "filebench",
        _plan_of_words("filebench"),
        direct_hint="use --on loop:4g",
        is_told_by_records=True,
        has_variables=True,
    ),
    Dialect(
        "ycsb",
        _plan_of_words("ycsb"),
        direct_hint="use --on loop:2g",
        is_told_by_records=True,
        has_properties=True,
    ),
    Dialect("iolab", plan_of_file, suffixes=(".toml",), is_seeded_by_round=True),
)
FILE_DIALECT: Final = "iolab"
"""Dialect of a file if nothing else is said."""


def find_dialect(name: object) -> Dialect:
    """Row of a dialect.

    Raises
    ------
    ValueError : there is none; names the nearest.
    """
    for dialect in DIALECTS:
        if dialect.name == name:
            return dialect
    from iolab.wording import nearest

    names = [dialect.name for dialect in DIALECTS]
    raise ValueError(
        f"'{name}' is not a dialect{nearest(str(name), names)} (known: {', '.join(names)})"
    )


def described_entry(text: str) -> dict[str, str | list[str]] | None:
    """An entry of a study for ``iozone -s 64m`` or ``FILE.toml``; None for another text.

    Raises
    ------
    StudyError : a quote is not closed.
    """
    words = words_of(text)
    for dialect in DIALECTS:
        if dialect.has_file and text.endswith(dialect.suffixes):
            name = _name_of(text.rpartition("/")[2].rpartition(".")[0])
            return {"name": name, "dialect": dialect.name, "file": text}
        if not dialect.has_file and words[:1] == [dialect.name]:
            return {"name": dialect.name, "dialect": dialect.name, "command": words[1:]}
    return None


def _name_of(stem: str) -> str:
    """A name for a workload whose file is called so."""
    name = _NO_NAME.sub("-", stem).strip("-.+")[:_NAME_MAX]
    return name or "workload"


def words_of(command: str) -> list[str]:
    """Words of a command, as a shell divides them.

    Raises
    ------
    StudyError : a quote is not closed.
    """
    try:
        return shlex.split(command)
    except ValueError as error:
        raise StudyError(f"the command '{command}' ends too early: {error}", "quote it") from None


def of_one_run(dialect: Dialect, words: Sequence[str]) -> list[str]:
    """The words without those that belong to one run: where it is stored, what it may replace."""
    return without_options(words, _OF_ONE_RUN, _OURS_WITHOUT, dialect.switches)


def without_ours(dialect: Dialect, words: Sequence[str]) -> list[str]:
    """The words without the options that iolab adds to every dialect for running it."""
    return without_options(words, _OURS_WITH_VALUE, _OURS_WITHOUT, dialect.switches)


def typed_again(dialect: Dialect, words: Sequence[str]) -> str:
    """The command of a study that does the same as a command line."""
    return shlex.join(without_ours(dialect, words))


# Words and names that are varied.


def owned_name(workload: str, path: str) -> str:
    """Name of the factor that varies a word of a workload: ``iozone:-r``."""
    return f"{workload}:{path}"


def with_level(dialect: Dialect, text: str, path: str, level: str) -> str:
    """The command with a word at a level, or the file's text with a name replaced.

    Raises
    ------
    StudyError : there is no such name in the text.
    """
    if dialect.has_file:
        named = f"${{{path}}}"
        if named not in text:
            raise StudyError(f"there is no {named} in the file", f"write {named} where it belongs")
        return text.replace(named, level)
    if dialect.has_properties and not path.startswith("-"):
        return shlex.join([*words_of(text), "-p", f"{path}={level}"])
    if dialect.has_jobs:
        return shlex.join(_with_job_option(words_of(text), f"--{path.removeprefix('--')}", level))
    if dialect.has_variables and not path.startswith("-"):
        return shlex.join(_with_variable(words_of(text), path.removeprefix("$"), level))
    kept = _without_word(words_of(text), path, has_value=level not in (PRESENT, ABSENT))
    if level == PRESENT:
        kept.append(path)
    elif level != ABSENT:
        kept += [f"{path}={level}"] if path.startswith("--") else [path, level]
    return shlex.join(kept)


def _with_job_option(words: Sequence[str], option: str, level: str) -> list[str]:
    """The words with an option at a level in every job; the last word about it counts."""
    written = [] if level == ABSENT else [option if level == PRESENT else f"{option}={level}"]
    found = list[str]()
    has_job = False
    for word in _without_word(words, option, has_value=level not in (PRESENT, ABSENT)):
        if word.partition("=")[0] == _JOB:
            found += written if has_job else []
            has_job = True
        found.append(word)
    return [*found, *written]


def _with_variable(words: Sequence[str], name: str, level: str) -> list[str]:
    """The words with a variable of the script at a level."""
    found = list[str]()
    for word in words:
        assignment = word.removeprefix(f"{_SET}=").removeprefix("$")
        is_value = word.startswith(f"{_SET}=") or found[-1:] == [_SET]
        if is_value and assignment.partition("=")[0] == name:
            del found[len(found) - (found[-1:] == [_SET]) :]
        else:
            found.append(word)
    return [*found, _SET, f"{name}={level}"]


def _settled(entry: Entry, core: DialectCore) -> Entry:
    """The entry with its jobs as words, so that no file is needed to run it again.

    Raises
    ------
    DialectError : the dialect refuses the words.
    """
    if entry.is_line or not entry.dialect.reads_files:
        return entry  # The text of a file is not made of words.
    words = without_ours(entry.dialect, words_of(entry.text))
    if entry.dialect.has_properties:
        names_file = _PROPERTY_FILE in words
    else:
        names_file = any(word[:1] != "-" for word in words)
    if not names_file:
        return entry
    return replace(entry, text=_as_words(entry, core))


def _as_words(entry: Entry, core: DialectCore) -> str:
    """The text of an entry; its jobs as words, with whole names of recordings."""
    if entry.is_line or not entry.dialect.reads_files:
        return entry.text
    words = words_of(entry.text)
    if without_ours(entry.dialect, words) != words:
        raise _said_by_the_study(entry)
    shown = read_json(core.dialect_parse(entry.dialect.name, [*words, _SHOW_WORDS]))
    text = " ".join((shown["only_text"] or "").split("\n"))
    return shlex.join(words_of(text)[1:])


def _without_word(words: Sequence[str], path: str, *, has_value: bool) -> list[str]:
    found = list[str]()
    is_value = False
    for word in words:
        is_attached = word.startswith(f"{path}=") or (
            len(path) == _SHORT and word.startswith(path) and word != path
        )
        if is_value:
            is_value = False
        elif word == path:
            is_value = has_value
        elif not (has_value and is_attached):
            found.append(word)
    return found


# Plans.


@frozen
class Entry:
    """One workload as a study file or a flag describes it."""

    name: str
    dialect: Dialect
    text: str
    """The command, or the text of the file."""
    file: str = ""
    """Name of the file."""
    vary: tuple[Factor, ...] = ()
    settings: Levels = ()
    is_line: bool = False
    """True if it is a command line of its own, which may ask for what no study can."""


def workloads_of(entry: Entry, core: DialectCore) -> tuple[DialectWorkload, ...]:
    """The workloads that an entry stands for: one, or one for each row that is unlike the others.

    Raises
    ------
    DialectError : the dialect refuses the words; says at which level.
    StudyError : the command asks for what a study cannot do.
    """
    if not entry.is_line:
        entry = replace(entry, text=_checked(entry, (), lambda: _settled(entry, core).text))
    plans = [(levels, _plan_at(entry, levels, core)) for levels in _combinations(entry)]
    recordings = recordings_in(row.workload for _, plan in plans for row in plan.rows)
    rows = [(levels, row) for levels, plan in plans for row in plan.rows]
    if not rows:
        raise StudyError(f"{entry.name}: the command measures nothing", "name something to do")
    _, first = plans[0]
    base = DialectWorkload(
        name=entry.name,
        dialect=entry.dialect.name,
        text=_as_words(entry, core) if recordings else entry.text,
        file=entry.file,
        vary=entry.vary,
        settings=entry.settings,
        entry=entry.name,
        cache=first.cache,
        files=first.files,
        asked=json.dumps({} if first.command is None else first.command["asked"]),
        recordings=recordings,
    )
    own = _table_factors([row for _, row in rows[: len(first.rows)]])
    is_table = len(first.rows) == 1 or bool(own)
    if not is_table and entry.vary:
        raise StudyError(
            f"{entry.name}: the command measures unlike things one after the other, so that no "
            "word of it can be varied",
            "write one workload for each",
        )
    _refuse_idle_words(entry, plans)
    if not is_table:
        # A line has nothing beside its rows that they could be taken for.
        prefix = "" if entry.is_line else f"{entry.name}/"
        names = different([f"{prefix}{row.name}" for _, row in rows])
        return tuple(
            replace(base, name=name, rows=(_row(row, ()),))
            for name, (_, row) in zip(names, rows, strict=True)
        )
    return (replace(base, rows=tuple(_row(row, (*at, *_of(row, own))) for at, row in rows)),)


def different(names: Sequence[str]) -> list[str]:
    """The same names, those that came before with a number: ``2m`` and ``2m-2``."""
    counts: dict[str, int] = {}
    found = list[str]()
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return found


def of_plan(entry: Entry, plan: EntryPlan) -> tuple[DialectWorkload, ...]:
    """The workloads of a command line whose plan is known."""

    def known_plan(*_: object) -> EntryPlan:
        return plan

    known = replace(entry, dialect=replace(entry.dialect, make_plan=known_plan))
    return workloads_of(known, _NO_CORE)


_NO_CORE = cast("DialectCore", None)
"""Of a plan that is known nothing is asked."""


def _combinations(entry: Entry) -> list[Levels]:
    names = [owned_name(entry.name, factor.name) for factor in entry.vary]
    products = itertools.product(*(factor.levels for factor in entry.vary))
    return [tuple(zip(names, levels, strict=True)) for levels in products]


def text_at(workload: DialectWorkload, levels: Levels) -> str:
    """The command or the file's text with its varied words at some levels of a study."""
    dialect, wanted, text = find_dialect(workload.dialect), dict(levels), workload.text
    for factor in workload.vary:
        level = wanted[owned_name(workload.entry, factor.name)]
        text = with_level(dialect, text, factor.name, level)
    return text


def _plan_at(entry: Entry, levels: Levels, core: DialectCore) -> EntryPlan:
    """Plan of an entry with its varied words at some levels."""
    text = entry.text
    for factor, (_, level) in zip(entry.vary, levels, strict=True):
        text = with_level(entry.dialect, text, factor.name, level)

    def make() -> EntryPlan:
        if entry.is_line:
            return entry.dialect.make_plan(core, entry.file or entry.name, text)
        if not entry.dialect.looks_around:
            plan = entry.dialect.make_plan(core, entry.file or entry.name, text)
            _check_plan(entry, plan.command)
            return plan
        _refuse_place(entry, words_of(text))
        plan = entry.dialect.make_plan(core, entry.name, f"{_ELSEWHERE} {text}")
        _check_plan(entry, plan.command, but=("on",))
        return plan

    return _checked(entry, levels, make)


def _checked(entry: Entry, levels: Levels, make: Callable[[], _Made]) -> _Made:
    """Value that is made of an entry; an error names the entry and the levels."""
    try:
        return make()
    except DialectError as error:
        # The command with a mark below its word is left out: the study says the place itself.
        raise StudyError(f"{_place(entry, levels)}: {error.message}", error.hint) from None
    except IolabError as error:
        if not levels:
            raise
        raise StudyError(
            f"{_place(entry, levels)}: {error.message}", error.hint, between=error.between
        ) from None


def _refuse_idle_words(entry: Entry, plans: Sequence[tuple[Levels, EntryPlan]]) -> None:
    """Refuse to vary a word that changes nothing.

    Raises
    ------
    StudyError : the command does the same at all levels of a word.
    """
    done = {
        at: json.dumps([*(row.workload for row in plan.rows), plan.cache]) for at, plan in plans
    }
    for place, factor in enumerate(entry.vary):
        # Levels of the other words, to everything that is done with them.
        found: dict[Levels, set[str]] = {}
        for at, text in done.items():
            found.setdefault((*at[:place], *at[place + 1 :]), set()).add(text)
        if all(len(texts) == 1 for texts in found.values()):
            raise StudyError(
                f"{entry.name}: {factor.name} changes nothing: the same is done at all of "
                f"{', '.join(factor.levels)}",
                "vary another word, or write the command so that it counts",
            )


def _place(entry: Entry, levels: Levels) -> str:
    """An entry with its varied words at some levels, for messages."""
    at = [f"{f.name} = {level}" for f, (_, level) in zip(entry.vary, levels, strict=True)]
    return f"{entry.name} with {', '.join(at)}" if at else entry.name


def _refuse_place(entry: Entry, words: Sequence[str]) -> None:
    if any(word == "--on" or word.startswith("--on=") for word in words):
        raise _said_by_the_study(entry)


def _said_by_the_study(entry: Entry) -> StudyError:
    return StudyError(
        f"{entry.name}: the study says where and how often it runs, not the command",
        "leave --on, --out, --repeat (bonnie++: -x) and --overwrite out of the command",
    )


def _check_plan(entry: Entry, command: CommandPlan | None, but: Sequence[str] = ()) -> None:
    """Refuse what a command asks for and only a command line of its own can have."""
    if command is None:
        return
    name, asked = entry.dialect.name, command["asked"]
    if command["only_text"] is not None:
        raise StudyError(f"'{name} {entry.text}' prints a text and measures nothing", "leave it")
    common = cast("Mapping[str, object]", command["common"])
    for key, usual in _OURS.items():
        if key not in but and common.get(key, usual) != usual:
            raise _said_by_the_study(entry)
    if asked["waits"] or asked["semaphores"] is not None:
        raise StudyError(f"{entry.name}: a study waits for no other program", "leave -y and -p out")
    show = cast("Mapping[str, object]", command["show"])
    if show.get("commands"):
        raise StudyError(
            f"{entry.name}: a study runs no commands of its jobs or scripts",
            "leave exec_prerun, exec_postrun and system out",
        )
    if show.get("scheduler") is not None:
        raise StudyError(
            f"{entry.name}: the scheduler is a factor of the study",
            "leave ioscheduler out, and write --scheduler",
        )
    if asked["workbook"]:
        raise StudyError(
            f"{entry.name}: a study has a workbook of its own", "leave -b out: see report.xlsx"
        )


# Rows.


def _row(row: PlannedRow, levels: Levels) -> DialectRow:
    description = write_json(row.workload)
    return DialectRow(row.name, levels, facts_of(row), description, row.demand, row.control_groups)


def _of(row: PlannedRow, factors: Sequence[Factor]) -> Levels:
    facts = dict(facts_of(row))
    return tuple((factor.name, facts[factor.name]) for factor in factors)


def _table_factors(rows: Sequence[PlannedRow]) -> tuple[Factor, ...]:
    """Sizes that rows differ by, if they differ by nothing else."""
    known = [(_done(row), dict(facts_of(row))) for row in rows]
    done, first = known[0]
    names = {name for name in first if any(facts.get(name) != first[name] for _, facts in known)}
    places = {tuple(facts.get(name) for name in _SIZES) for _, facts in known}
    is_table = names <= set(_SIZES) and all(other == done for other, _ in known)
    if not is_table or len(places) < len(known):
        return ()
    return tuple(
        Factor(name, tuple(dict.fromkeys(facts[name] for _, facts in known)))
        for name in _SIZES
        if name in names
    )


def _done(row: PlannedRow) -> list[tuple[str, list[str]]]:
    """Tests and who takes part: a reader more is another test, whatever it is called."""
    return [
        (phase["name"], [tenant["name"] for tenant in phase["tenants"]])
        for phase in row.workload["phases"]
    ]


def facts_of(row: PlannedRow) -> Levels:
    """Levels of factors that a row has, as far as all of it has the same."""
    workload, tenants = row.workload, row.tenants
    first = tenants[0]
    told = row.row
    record_bytes = (told["record_kb"] << 10 if told else 0) or first["io_size_bytes"]
    file_bytes = (told["file_kb"] << 10 if told else 0) or first["file_bytes"]
    fsync = first["fsync"]["kind"]
    accesses = {tenant["access"] for tenant in tenants}
    levels = {
        "record_size": units.format_bytes(record_bytes) if record_bytes else None,
        "file_size": units.format_bytes(file_bytes) if file_bytes else None,
        "workers": str((told["children"] if told else 0) or first["workers"]),
        "depth": str(max(tenant["depth"] for tenant in tenants)),
        "engine": workload["engine"],
        "workers_as": workload["workers_as"],
        "direct": str(accesses == {"direct"}).lower() if len(accesses) == 1 else None,
        "durability": first["durability"],
        "fsync": _FSYNC.get(fsync),
        "fsync_every": _FLUSHES.get(fsync, "never"),
        "flush": first.get("flush", "fsync"),
        "lock": first.get("lock", "none"),
        "verify": workload.get("verify", "none"),
    }
    return tuple((name, level) for name, level in levels.items() if level is not None)


def own_factors(workloads: Sequence[WorkloadPlan]) -> tuple[Factor, ...]:
    """Factors that workloads bring along: varied words, and sizes of rows."""
    levels: dict[str, dict[str, None]] = {}
    for workload in workloads:
        for row in workload.rows if isinstance(workload, DialectWorkload) else ():
            for name, level in row.levels:
                levels.setdefault(name, {})[level] = None
    return tuple(Factor(name, tuple(found)) for name, found in levels.items())


def usual_level(workloads: Sequence[DialectWorkload], factor: Factor) -> str:
    """The level of a factor that most rows have: the others meet it most often."""
    found = [dict(row.levels).get(factor.name) for one in workloads for row in one.rows]
    return max(factor.levels, key=found.count)


def too_large(plan: EntryPlan) -> DialectError | None:
    """Error of a file that no file system has, and no number of the store either."""
    for row in plan.rows:
        file_kb = row.row["file_kb"] if row.row else 0
        if file_kb << 10 > units.SIZE_MAX:
            return DialectError(
                f"a file of {file_kb} kB is larger than any file", "use at most 4 EiB"
            )
    return None
