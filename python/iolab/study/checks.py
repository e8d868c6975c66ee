"""Faults that make a study impossible or doubtful, found before anything is touched.

Errors stop; notes travel with the results. Every check looks at treatments, so that a combination
is judged as it would really run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iolab import units
from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.study.dialects import find_dialect, words_of
from iolab.study.factors import (
    DEFAULT_OPTIONS,
    Scope,
    find_factor,
    is_factor,
    label_delay_ns,
    scheduler_of,
)
from iolab.study.influence import (
    NEVER,
    Inert,
    inert_parts,
    parts_of,
)
from iolab.study.model import DialectWorkload, IozoneWorkload, MixedWorkload, Study
from iolab.study.names import ENGINES, KNOBS, EngineName
from iolab.study.operations import operations_of
from iolab.study.testbeds import NO_FILE_SYSTEM
from iolab.study.treatment import DEEP_ENGINE, Treatment, depth_max
from iolab.wording import counted

SECTOR_BYTES: Final = 512
TREATMENTS_MANY: Final = 64
ROUNDS_FEW: Final = 5
FEW_ROUNDS: Final = "few_rounds"
"""Code of the note about fewer rounds than that."""
_WITHOUT_EXTENTS: Final = frozenset({"ext2", "ext3"})
"""File systems on which fallocate(2) fails (Linux fs/ext4/extents.c: extents alone have it)."""
_OF_LOWERED: Final = frozenset({"direct", "engine", "verify"})
"""Factors that a dialect's workload says itself: what it needs is asked when it is lowered."""
_WEIGHING_SCHEDULER: Final = "bfq"
"""The only one with io.weight (Linux block/bfq-cgroup.c); io.cost needs none."""
_ENGINES: Final = {engine.name: engine for engine in ENGINES}
_KNOB_NAMES: Final = frozenset(knob.name for knob in KNOBS)
_TWINS: Final = tuple((knob.name, knob.twin) for knob in KNOBS if knob.twin)


@frozen
class PlanNote:
    """A typed caveat of the plan; stored with the study and shown in reports."""

    code: str
    message: str
    hint: str


def check(study: Study, treatments: Sequence[Treatment]) -> tuple[PlanNote, ...]:
    """Notes about a plan that can run.

    Raises
    ------
    StudyError : some treatment cannot mean anything; names it and what to change.
    """
    _check_testbed_has_stack(study)
    _check_testbed_can(study, treatments)
    _check_tunables(study)
    _check_calls(study, treatments)
    notes = _without_effect(study, treatments)
    _check_contention(study, treatments)
    for treatment in treatments:
        for rule in _TREATMENT_RULES:
            rule(treatment)
        if not study.testbed.row.is_simulated:  # A simulated one has reasons of its own.
            _check_raw(treatment)
    return (
        *_notes_on_size(study, treatments),
        *_notes_on_tunables(study),
        *notes,
        *_notes_on_held(study, treatments),
        *_notes_on_throttling(study, treatments),
        *_notes_on_weights(study),
        *_notes_on_devices(study),
    )


def _sizes(treatment: Treatment) -> list[tuple[str, int, int]]:
    """(owner, record size, file size), in bytes, of everything the treatment does."""
    workload = treatment.workload
    if isinstance(workload, IozoneWorkload):
        record = units.parse_bytes(treatment.effective["record_size"])
        return [(workload.name, record, units.parse_bytes(treatment.effective["file_size"]))]
    if isinstance(workload, DialectWorkload):  # Its dialect has checked them.
        return []
    return [
        (f"{workload.name}/{stream.name}", stream.io_size_bytes, stream.file_bytes)
        for stream in workload.streams
    ]


def _check_record_fits(treatment: Treatment) -> None:
    for owner, record, file in _sizes(treatment):
        if record > file:
            raise StudyError(
                f"{owner}: record size {units.format_bytes(record)} is larger than the file "
                f"({units.format_bytes(file)})",
                "give a larger --file-size or smaller records",
            )


def _check_alignment(treatment: Treatment) -> None:
    if not treatment.is_direct:
        return
    for owner, record, _ in _sizes(treatment):
        if record % SECTOR_BYTES:
            raise StudyError(
                f"{owner}: record size {record} is not a multiple of {SECTOR_BYTES}, which direct "
                "I/O needs",
                f"use a multiple of {SECTOR_BYTES}, or --buffered (direct = false)",
            )


def _check_depth(treatment: Treatment) -> None:
    if isinstance(treatment.workload, DialectWorkload):  # Its dialect says what it does.
        return
    depth = depth_max(treatment.workload, treatment.effective)
    engine = treatment.effective["engine"]
    if depth > 1 and not treatment.is_deep:
        raise StudyError(
            f"{treatment.workload.name}: engine {engine} keeps one operation in flight, so depth "
            f"{depth} would silently be 1",
            f"use engine {DEEP_ENGINE}, or more workers",
        )


def _check_exclusive_knobs(treatment: Treatment) -> None:
    for first, second in _TWINS:
        if first in treatment.effective and second in treatment.effective:
            raise StudyError(
                f"{first} and {second} are two views of one setting; the kernel keeps the last",
                "give only one of them",
            )


def _check_external_journal(treatment: Treatment) -> None:
    fs = treatment.effective.get("fs")
    if treatment.effective.get("external_journal") == "true" and fs in ("ext2", "btrfs"):
        raise StudyError(
            f"{fs} has no journal that could lie on a second device",
            "use ext3, ext4 or xfs with external_journal",
        )


def _check_label(treatment: Treatment) -> None:
    label = treatment.effective.get("label", "")
    if label_delay_ns(label) and not isinstance(treatment.workload, MixedWorkload):
        raise StudyError(
            f"{treatment.workload.name}: label {label} pauses the operations of mixed workloads "
            "only",
            "use a workload of kind mixed, or a label without delay",
        )


def _way_to_a_raw_device(treatment: Treatment) -> str:
    workload = treatment.workload
    if not isinstance(workload, DialectWorkload):
        return "use --direct (direct = true), or choose a file system with --fs"
    dialect = find_dialect(workload.dialect)
    way = dialect.way_past_the_cache(words_of(workload.text)) if not dialect.has_file else ""
    way = way.partition("or use --on")[0].rstrip(", ") or "let it bypass the page cache"
    return f'{way}, or choose a file system: fs = "ext4" under [settings] of a study file'


def _check_raw(treatment: Treatment) -> None:
    """A device without a file system has no page cache of its own and no options."""
    effective = treatment.effective
    if effective.get("fs") != NO_FILE_SYSTEM:
        return
    row = treatment.row
    if row is not None and any(tenant.get("program") for tenant in row.tenants):
        raise StudyError(
            f"{treatment.workload.name}: trims, and transfers of several files or sizes, are not "
            "done on a device without a file system",
            'choose a file system: fs = "ext4" under [settings] of a study file',
        )
    if not treatment.is_direct:
        raise StudyError(
            f"{treatment.workload.name}: a device without a file system is used with direct I/O "
            "only",
            _way_to_a_raw_device(treatment),
        )
    if effective["cache"] == "warm":
        raise StudyError(
            "cache = warm on a device without a file system: direct I/O has no cache",
            "leave it out, or choose a file system with --fs",
        )
    for name in ("mkfs_options", "mount_options"):
        if effective[name] != DEFAULT_OPTIONS:
            raise StudyError(
                f"{name} = {effective[name]} without a file system",
                "choose a file system with --fs",
            )


def _check_mount_options(treatment: Treatment) -> None:
    """One text is one treatment: an option and its opposite were meant as two."""
    options = treatment.effective.get("mount_options", "").split(",")
    twice = next((name for name in options if f"no{name}" in options), None)
    if twice is not None:
        raise StudyError(
            f"mount_options = {','.join(options)}: {twice} and no{twice} at once",
            f"leave one out; to compare them, say --mount-options {twice} --mount-options"
            f' no{twice}, in a study file mount_options = ["{twice}", "no{twice}"]',
        )


def _check_preallocation(treatment: Treatment) -> None:
    """A file system without extents allocates nothing in advance, and says so to nobody."""
    effective = treatment.effective
    if effective.get("preallocate") == "true" and effective.get("fs") in _WITHOUT_EXTENTS:
        raise StudyError(
            f"preallocate = true on {effective['fs']}, which cannot allocate without writing",
            "leave --preallocate out, or choose ext4, xfs or btrfs",
        )


_TREATMENT_RULES: Final[tuple[Callable[[Treatment], None], ...]] = (
    _check_record_fits,
    _check_alignment,
    _check_depth,
    _check_exclusive_knobs,
    _check_external_journal,
    _check_label,
    _check_mount_options,
    _check_preallocation,
)


def _factors_in_use(study: Study) -> list[str]:
    held = [study.settings, *(workload.settings for workload in study.workloads)]
    names = [factor.name for factor in study.factors]
    names += [name for levels in held for name, _ in levels]
    names += study.knobs_changed
    return list(dict.fromkeys(names))


def _check_testbed_has_stack(study: Study) -> None:
    why = study.testbed.row.no_file_system
    if why is None:
        return
    for name in _factors_in_use(study):
        if is_factor(name) and find_factor(name).scope is Scope.STACK:
            raise StudyError(f"{name} cannot be chosen on {study.testbed.text}: {why[0]}", why[1])


def _is_bare(study: Study, treatment: Treatment) -> bool:
    """Tell whether files lie on a device without a file system, as far as the study can know.

    A stack file may name one: what it refuses is found out when the stack is built.
    """
    if study.testbed.argument.endswith(".toml"):
        return False
    return treatment.effective.get("fs", NO_FILE_SYSTEM) == NO_FILE_SYSTEM


def _check_testbed_can(study: Study, treatments: Sequence[Treatment]) -> None:
    for row in study.testbed.row.possible:
        for treatment in treatments:
            if row.is_without_files and not _is_bare(study, treatment):
                continue
            if row.factor in _OF_LOWERED and isinstance(treatment.workload, DialectWorkload):
                continue
            level = treatment.effective.get(row.factor)
            if level is not None and level not in row.levels:
                where = f"{row.factor} = {level} on {study.testbed.text}"
                raise StudyError(f"{where}: {row.reason}", row.hint)


def _check_calls(study: Study, treatments: Sequence[Treatment]) -> None:
    """Tell whether the testbed knows the calls that are asked for, and the engine can make them."""
    kind = study.testbed.row
    for treatment in treatments:
        workload = treatment.workload
        if isinstance(workload, DialectWorkload):  # Its dialect knows which calls there are.
            continue
        engine = _ENGINES[treatment.effective["engine"]]
        own, no_streams = operations_of(workload, treatment.effective), kind.limit("streams")
        streams = [one.id for one in own if one.access == "stdio" and one.has_own_calls]
        if streams and no_streams is not None and _is_bare(study, treatment):
            raise StudyError(
                f"{workload.name}: {', '.join(sorted(streams))} on {study.testbed.text}: "
                f"{no_streams.reason}",
                no_streams.hint,
            )
        if kind.flags is not None:
            _check_flags(study, treatment, kind.flags)
        if not _is_bare(study, treatment) or not kind.is_simulated:
            _check_memory_engine(treatment, engine)
        if kind.is_simulated:
            continue
        for need, is_asked in _calls_asked(treatment).items():
            able = [row.name for row in ENGINES if getattr(row, f"has_{need}")]
            if is_asked and engine.name not in able:
                raise StudyError(
                    f"{workload.name}: engine {engine.name} makes no calls with {need}",
                    f"use engine {' or '.join(able)}" if able else "leave it out",
                )


def _check_memory_engine(treatment: Treatment, engine: EngineName) -> None:
    """Tell what an engine of mappings or streams cannot do, and what only one of mappings can."""
    workload = treatment.workload
    if treatment.is_direct and not engine.has_direct:
        raise StudyError(
            f"{workload.name}: engine {engine.name} always goes through the page cache",
            "use --buffered (direct = false), or another engine",
        )
    durability = treatment.effective.get("durability", "none")
    if durability != "none" and engine.default_access != "plain":
        raise StudyError(
            f"{workload.name}: engine {engine.name} cannot make each write durable "
            f"(durability {durability}): it writes to memory",
            "use --fsync-every 1, or another engine",
        )
    flush = next((name for name in _flushes_asked(treatment) if name.startswith("msync")), None)
    if flush is not None and engine.default_access != "mapped":
        mapping = [row.name for row in ENGINES if row.default_access == "mapped"]
        raise StudyError(
            f"{workload.name}: {flush} flushes a mapped file, and engine {engine.name} maps none",
            f"use --flush fsync, or --engine {' or '.join(mapping)} with --buffered",
        )


def _flushes_asked(treatment: Treatment) -> list[str]:
    """Calls that flush between the operations of a treatment."""
    workload, effective = treatment.workload, treatment.effective
    if isinstance(workload, MixedWorkload):
        return [stream.flush for stream in workload.streams if stream.fsync_every]
    if effective.get("fsync_every", NEVER) == NEVER:
        return []
    return [effective["flush"]] if "flush" in effective else []


def _check_flags(study: Study, treatment: Treatment, known: frozenset[str]) -> None:
    workload, limit = treatment.workload, study.testbed.row.limit("idle_flags")
    if not isinstance(workload, MixedWorkload):
        asked = set(treatment.effective["flags"].split(",")) - {DEFAULT_OPTIONS}
    else:
        asked = {flag for stream in workload.streams for flag in stream.flags}
    other = sorted(asked - known)
    if other and limit is not None:
        raise StudyError(
            f"{workload.name}: flags {', '.join(other)} on {study.testbed.text}: {limit.reason}",
            limit.hint,
        )


def _check_contention(study: Study, treatments: Sequence[Treatment]) -> None:
    """Control groups need processes and a kernel; changes need a kernel, and knobs of their own."""
    for treatment in treatments:
        workload = treatment.workload
        if not isinstance(workload, MixedWorkload):
            continue
        grouped = [stream.name for stream in workload.streams if stream.has_cgroup]
        _check_contention_is_possible(study, workload, grouped)
        if grouped and treatment.effective["workers_as"] != "processes":
            raise StudyError(
                f"{workload.name}/{grouped[0]}: a weight or a limit belongs to a control group, "
                "and a thread cannot have one of its own",
                'use workers_as = "processes"',
            )
        followed = {name for name, _ in treatment.levels}
        for change in workload.changes:
            for name, _ in change.knobs:
                if name in followed and name == study.compared_factor:
                    raise StudyError(
                        f"{workload.name}: {name} is compared, and changes while it runs",
                        "compare something else, or leave the change out",
                    )


def _check_contention_is_possible(
    study: Study, workload: MixedWorkload, grouped: list[str]
) -> None:
    where, kind = study.testbed.text, study.testbed.row
    no_groups, no_changes = kind.limit("control_groups"), kind.limit("changes")
    if grouped and no_groups is not None:
        raise StudyError(
            f"{workload.name}/{grouped[0]} on {where}: {no_groups.reason}", no_groups.hint
        )
    if workload.changes and no_changes is not None:
        names = ", ".join(name for name, _ in workload.changes[0].knobs)
        raise StudyError(
            f"{workload.name} on {where}: {no_changes.reason}, {names} cannot change",
            no_changes.hint,
        )


def _calls_asked(treatment: Treatment) -> dict[str, bool]:
    """Special properties of the calls of a treatment."""
    workload, effective = treatment.workload, treatment.effective
    if isinstance(workload, IozoneWorkload):
        return {
            "vectors": effective["vectors"] != "1",
            "flags": effective["flags"] != DEFAULT_OPTIONS,
            "lock": effective["lock"] != "none",
        }
    if isinstance(workload, DialectWorkload):
        return {}
    return {
        "vectors": any(stream.vectors > 1 for stream in workload.streams),
        "flags": any(stream.flags for stream in workload.streams),
        "lock": any(stream.lock != "none" for stream in workload.streams),
    }


def _check_tunables(study: Study) -> None:
    schedulers = study.levels_in_use("scheduler")
    for name in _factors_in_use(study):
        owner = scheduler_of(name)
        if owner is not None and owner not in schedulers:
            raise StudyError(
                f"{name} has no effect: {owner} is not among the schedulers of the study",
                f"add --scheduler {owner}",
            )


def _without_effect(study: Study, treatments: Sequence[Treatment]) -> list[PlanNote]:
    """Refuse what is varied and cannot matter anywhere; note where it cannot.

    Raises
    ------
    StudyError : all levels of a factor would do the same.
    """
    notes = list[PlanNote]()
    for factor in study.factors:
        if len(factor.levels) < 2:
            continue
        name = factor.name
        if not is_factor(name):  # A word of a command.
            continue
        is_bare = all(_is_bare(study, treatment) for treatment in treatments)
        alike = study.testbed.row.why_alike(name, factor.levels, is_bare=is_bare)
        if alike is not None:
            what = " and ".join(factor.levels) if alike.levels else name
            raise StudyError(
                f"{alike.reason}: {what} cannot be compared on {study.testbed.text}",
                alike.hint,
            )
        notes += _inert_notes(study, name, treatments)
    return notes


def _inert_notes(study: Study, name: str, treatments: Sequence[Treatment]) -> list[PlanNote]:
    """One note per reason why a factor changes nothing in a part of the study.

    Raises
    ------
    StudyError : it changes nothing anywhere.
    """
    followers = [row for row in treatments if any(key == name for key, _ in row.levels)]
    places = dict[Inert, dict[str, None]]()
    is_felt = False
    for row in followers:
        inert = inert_parts(study, name, row)
        tests = parts_of(row)
        is_felt = is_felt or len(inert) < len(tests)
        for why in dict.fromkeys(inert.values()):
            parts = [test for test in tests if inert.get(test) == why]
            where = ", ".join(parts) if len(parts) < len(tests) else _without(row, name)
            places.setdefault(why, {})[where] = None
    if places and not is_felt:
        why = next(iter(places))
        raise StudyError(f"{name} cannot matter here: {why.reason}", why.hint)
    return [
        PlanNote(
            "factor_without_effect",
            f"{name} has no effect on a part of the study ({', '.join(found)}): {why.reason}",
            why.hint,
        )
        for why, found in places.items()
    ]


def _notes_on_held(study: Study, treatments: Sequence[Treatment]) -> list[PlanNote]:
    """Note a knob that is set once and cannot matter: nobody types one for nothing."""
    held = [(f.name, f.levels[0]) for f in study.factors if len(f.levels) == 1]
    notes = list[PlanNote]()
    for name, level in (*held, *study.settings):
        if name not in _KNOB_NAMES:
            continue
        found = [inert_parts(study, name, row) for row in treatments]
        if all(
            len(inert) == len(parts_of(row)) for inert, row in zip(found, treatments, strict=True)
        ):
            why = next(iter(found[0].values()))
            notes.append(
                PlanNote(
                    "setting_without_effect",
                    f"{name} = {level} changes nothing here: {why.reason}",
                    f"leave it out, or {why.hint.partition(', or hold')[0]}",
                )
            )
    return notes


def _notes_on_throttling(study: Study, treatments: Sequence[Treatment]) -> list[PlanNote]:
    """Note that throttling spares direct writes (Linux block/blk-wbt.c)."""
    name = "wbt_lat_usec"
    is_used = name in dict(study.settings) or study.factor(name) is not None
    # Where all its levels are the same anyway there is nothing to add.
    is_bare = all(_is_bare(study, treatment) for treatment in treatments)
    if study.testbed.row.why_alike(name, (), is_bare=is_bare) or not is_used:
        return []
    if not all(row.is_direct for row in treatments):
        return []
    return [
        PlanNote(
            "factor_hardly_felt",
            f"{name} can hardly matter here: it holds back buffered writes, and all files are "
            "direct; at most a file system's own writes feel it",
            "use --buffered",
        )
    ]


def _without(treatment: Treatment, name: str) -> str:
    """A treatment but for one factor, for people."""
    levels = ", ".join(f"{key} = {level}" for key, level in treatment.levels if key != name)
    return f"{treatment.workload.name} with {levels}" if levels else treatment.workload.name


def _notes_on_weights(study: Study) -> list[PlanNote]:
    """Weights are honoured by one scheduler; elsewhere they promise what nobody keeps."""
    schedulers = study.levels_in_use("scheduler")
    others = [scheduler for scheduler in schedulers if scheduler != _WEIGHING_SCHEDULER]
    if not study.has_weights or (schedulers and not others):
        return []
    where = f"unless the device uses {_WEIGHING_SCHEDULER}"
    if others:
        where = f"under {', '.join(others)}"
    return [
        PlanNote(
            "weight_without_effect",
            f"cgroup_weight has no effect {where}: only {_WEIGHING_SCHEDULER} and io.cost honour "
            "weights",
            f"use --scheduler {_WEIGHING_SCHEDULER}",
        )
    ]


def _notes_on_devices(study: Study) -> list[PlanNote]:
    """Devices that jobs name, and for which files of the testbed stand."""
    if study.command:  # Its dialect has told it.
        return []
    return [
        PlanNote(
            "device_not_used",
            f"{workload.name}: {name} itself is not used: on the testbed a file has its name",
            "`iolab fio` without --on reads the device; --on device:PATH measures and erases it",
        )
        for workload in study.workloads
        if isinstance(workload, DialectWorkload)
        for name in workload.request.get("devices_not_used", ())
    ]


def _notes_on_tunables(study: Study) -> list[PlanNote]:
    """A varied tunable of one scheduler does nothing under the others."""
    schedulers = study.levels_in_use("scheduler")
    notes = list[PlanNote]()
    for factor in study.factors:
        owner = scheduler_of(factor.name)
        others = [scheduler for scheduler in schedulers if scheduler != owner]
        if owner is not None and others:
            notes.append(
                PlanNote(
                    "tunable_without_effect",
                    f"{factor.name} changes nothing under {', '.join(others)}: those treatments "
                    "differ in name only",
                    f"to tune {owner} alone, use --scheduler {owner}",
                )
            )
    return notes


def _notes_on_size(study: Study, treatments: Sequence[Treatment]) -> list[PlanNote]:
    notes = list[PlanNote]()
    if len(treatments) > TREATMENTS_MANY:
        notes.append(
            PlanNote(
                "many_treatments",
                f"a round has {len(treatments)} treatments, more than {TREATMENTS_MANY}: it takes "
                "long, and the machine drifts inside it",
                "drop levels, or split the study",
            )
        )
    if study.is_comparison and study.rounds is not None and study.rounds < ROUNDS_FEW:
        notes.append(few_rounds(study.rounds))
    return notes


def few_rounds(rounds: int) -> PlanNote:
    """Note that so few rounds can hardly decide anything."""
    return PlanNote(
        FEW_ROUNDS,
        f"only {counted(rounds, 'complete round')}: where results vary, the answer will probably be"
        " 'undecided'",
        f"plan at least {ROUNDS_FEW}; `iolab plan` says how many will probably decide",
    )
