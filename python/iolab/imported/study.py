"""An imported table as a study: trials that are its runs, and caveats for all that is not known."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.imported.checks import Checked, check_reading
from iolab.imported.documents import averages_remark
from iolab.imported.foreign.join import Named, read_files
from iolab.imported.mapping import Wishes, understand_columns
from iolab.imported.quantities import KNOWN_UNITS, doubt_of, is_time, quantity_of
from iolab.imported.table import Background, Table, TableError, read_table
from iolab.imported.values import Levels, Reading, Value, read_values
from iolab.imported.wide import in_long_form
from iolab.stats.ledger import is_average_of_operations
from iolab.store.db import Origin, Store
from iolab.store.derived import DerivedRecord, PhaseRow
from iolab.store.rows import Caveat, Nature
from iolab.study.factors import find_factor, is_factor
from iolab.study.model import Factor, IozoneWorkload, Study, TestbedRequest
from iolab.study.plan import Plan, Trial
from iolab.study.treatment import Treatment
from iolab.wording import counted, nearest

KIND: Final = "imported"
TABLE_SUFFIXES: Final = (".csv", ".tsv")
LEVELS_MAX: Final = 500
"""Levels of the factor that is ranked: all pairs of them are compared."""
_SHOWN: Final = 8
_RATIO: Final = re.compile(r"x|times|ratio|speed-?up|x faster")
_LINES_SHOWN: Final = 5
_LONE: Final = ("configuration", "the only one")
"""Factor and level of a table in which nothing varies."""


@frozen
class Imported:
    """A table that was understood and is ready to be stored."""

    reading: Reading
    checked: Checked
    plan: Plan
    trials: tuple[Trial, ...]
    values: dict[str, list[Value]]
    """Trial id to its rows."""
    caveats: tuple[Caveat, ...]
    facts: dict[str, str]


def understand(path: Path, wishes: Wishes) -> Imported:
    """Read a table and plan the study that it stands for; writes nothing.

    Raises
    ------
    TableError : the file is no such table; names file, line and column.
    """
    return understand_table(read_table(path), wishes)


def understand_files(named: list[Named], wishes: Wishes) -> Imported:
    """Read what fio, iozone and bonnie++ wrote, or a single table; writes nothing.

    Raises
    ------
    TableError : a file is neither; names file and line.
    """
    table = read_files(named, wishes.compare, unit=wishes.unit, factors=tuple(wishes.factors))
    if table is None:
        table = _read_lone_table(named[0].path)
    return understand_table(table, wishes)


def _read_lone_table(path: Path) -> Table:
    try:
        return read_table(path)
    except TableError as error:
        if path.suffix.lower() in TABLE_SUFFIXES or not path.is_file():
            raise
        raise TableError(
            f"{path}: no output of fio, iozone or bonnie++ that holds a result, nor a CSV table"
            f" ({error.message.removeprefix(str(path)).lstrip(':, ')})",
            "name what fio, iozone or bonnie++ printed on stdout, a log of fio, iozone's -b file,"
            " or a table",
        ) from None


def understand_table(table: Table, wishes: Wishes) -> Imported:
    """Plan the study that a table stands for; writes nothing.

    Raises
    ------
    TableError : a row or column is not what it should be.
    """
    path = table.path
    _check_unit(wishes.unit)
    table = in_long_form(table, wishes)
    mapping = understand_columns(table, wishes)
    reading = read_values(table, mapping, wishes)
    constants = {c: next(r.cells[c] for r in table.rows if r.cells[c]) for c in mapping.constants}
    checked = check_reading(reading)
    study = _study(reading, wishes)
    trials, values = _trials(reading, study)
    plan = Plan(study, 0, tuple(dict.fromkeys(t.treatment for t in trials)), ())
    facts = {f"source.{name}": value for name, value in (*constants.items(), *table.facts)}
    facts |= {"source.file": path.name, "source.sha256": table.sha256}
    if checked.text:
        facts["source.printed_means"] = checked.text
    caveats = (*_caveats(reading, constants, study.compared_factor), *checked.caveats)
    return Imported(reading, checked, plan, trials, values, caveats, facts)


def _check_unit(unit: str) -> None:
    """Refuse a unit by which nothing of the table could be judged."""
    if doubt := doubt_of(unit):
        raise StudyError(f"--unit {unit}: it is printed for bits and for bytes", f"say {doubt}")
    if unit and quantity_of(unit, "") is None:
        raise StudyError(
            f"--unit {unit}: iolab does not know this unit{nearest(unit, KNOWN_UNITS)}",
            f"known are {', '.join(KNOWN_UNITS)}, and the names of metrics, as in latency_ns_p99",
        )


def store_imported(imported: Imported, database: Path, iolab_version: str) -> None:
    """Write the study; all or nothing.

    Raises
    ------
    StoreError : there is one already, or it cannot be written.
    """
    table = imported.reading.table
    testbed = {
        "kind": KIND,
        "file": table.path.name,
        "sha256": table.sha256,
        "bytes": table.size_bytes,
        "files": [{"name": o.path.name, "sha256": o.sha256} for o in table.origins],
        "columns": list(table.columns),
        "roles": dict(imported.reading.mapping.roles),
        "factors": {f.column: f.name for f in imported.reading.mapping.factors},
    }
    origin = Origin(iolab_version, f"{KIND}:{table.path.name}", KIND, imported.caveats)
    with Store.create(database, imported.plan, origin) as store, store.whole_or_gone():
        session = store.begin_session("import", iolab_version=iolab_version, testbed=testbed)
        store.add_trials(imported.trials)
        for trial in imported.trials:
            store.commit_record(trial.trial_id, session, _record(imported, trial))


def _study(reading: Reading, wishes: Wishes) -> Study:
    path = reading.table.path
    levels: dict[str, list[str]] = defaultdict(list)
    every = [*reading.runs, *reading.failed]
    for value in every:
        for name, level in value.levels:
            if level not in levels[name]:
                levels[name].append(level)
    if not levels:
        levels[_LONE[0]] = [_LONE[1]]
    compared = _compared(reading, wishes, levels)
    if len(levels[compared]) > LEVELS_MAX:
        reading.table.fail(
            f"{compared} has {len(levels[compared])} levels, more than {LEVELS_MAX} that can be"
            " compared with each other",
            "does the column number or date the rows? Say with --factor which columns are levels,"
            " or with --compare which of them is to be ranked",
        )
    baseline = wishes.baseline or levels[compared][0]
    if baseline not in levels[compared]:
        raise StudyError(
            f"--baseline {baseline}: {compared} has no such level"
            f"{nearest(baseline, levels[compared])}",
            f"levels are {', '.join(levels[compared][:_SHOWN])}",
        )
    operations: dict[str, dict[str, None]] = defaultdict(dict)
    for value in every:
        operations[value.workload][value.operation] = None
    return Study(
        name=wishes.name or path.stem,
        testbed=TestbedRequest(KIND, path.name),
        factors=tuple(Factor(name, tuple(found)) for name, found in levels.items()),
        settings=(),
        workloads=tuple(IozoneWorkload(w, tuple(found)) for w, found in operations.items()),
        compared_factor=compared,
        baseline=baseline,
        margin=wishes.margin,
        rounds=max(value.run for value in every),
        seed=0,
    )


def _compared(reading: Reading, wishes: Wishes, levels: dict[str, list[str]]) -> str:
    if wishes.compare:
        plain = wishes.compare.replace("-", "_")
        name = next((n for n in (wishes.compare, plain) if n in levels), None)
        if name is None:
            raise StudyError(
                f"--compare {wishes.compare}: the table has no such factor"
                f"{nearest(wishes.compare, levels)}",
                f"factors are {', '.join(levels)}",
            )
        return name
    option = reading.mapping.option
    if option in levels:
        return str(option)
    several = [name for name, found in levels.items() if len(found) > 1] or list(levels)
    names = [n for n in several if not (is_factor(n) and find_factor(n).is_numeric)]
    return (names or several)[0]


def _trials(reading: Reading, study: Study) -> tuple[tuple[Trial, ...], dict[str, list[Value]]]:
    """One trial per workload, levels and run; places in a run are those of the table.

    What failed in a run is a trial beside what did not.
    """
    workloads = {workload.name: workload for workload in study.workloads}
    found: dict[tuple[int, str, Levels, bool], list[Value]] = defaultdict(list)
    every = [*reading.runs, *reading.failed]
    for value in every:
        is_failed = value.background is not None and bool(value.background.error)
        found[value.run, value.workload, value.levels, is_failed].append(value)
    lone = () if any(value.levels for value in every) else (_LONE,)
    trials: list[Trial] = []
    values: dict[str, list[Value]] = {}
    place: Counter[int] = Counter()
    for ordinal, key in enumerate(sorted(found, key=lambda k: k[0]), start=1):
        run, workload, levels, _ = key
        levels_or_lone = levels or lone
        trial = Trial(
            trial_id=f"t{ordinal:04d}",
            ordinal=ordinal,
            round=run,
            position=place[run],
            treatment=Treatment(workloads[workload], levels_or_lone, levels_or_lone),
            seed=0,
            is_plot_start=False,
        )
        place[run] += 1
        trials.append(trial)
        values[trial.trial_id] = found[key]
    return tuple(trials), values


def _record(imported: Imported, trial: Trial) -> DerivedRecord:
    values = imported.values[trial.trial_id]
    error = next((b.error for v in values if (b := v.background) is not None and b.error), None)
    phases: dict[str, dict[str, float]] = defaultdict(dict)
    known: dict[str, Background] = {}
    for value in values if error is None else ():
        metrics = phases[value.operation]
        if value.quantity is not None:
            metrics[value.quantity.metric] = float(value.printed) * value.quantity.scale
        if value.background is not None:
            known.setdefault(value.operation, value.background)
    table = imported.reading.table
    own = {str(o.path): {"file": o.path.name, "sha256": o.sha256} for o in table.origins}
    whole = {"file": table.path.name, "sha256": table.sha256}
    source = {
        "source": own.get(values[0].file, whole),
        "rows": [
            {
                "line": value.line,
                "operation": value.operation,
                "value": value.printed,
                "unit": value.unit,
                "notes": value.notes,
            }
            for value in values
        ],
    }
    backgrounds = [v.background for v in values if v.background is not None]
    return DerivedRecord(
        status="ok" if error is None else "failed",
        started_at_unix_ns=min((b.started_at_unix_ns for b in backgrounds), default=0),
        elapsed_ns=max((b.elapsed_ns for b in backgrounds), default=0),
        error=error,
        caveats=(),
        facts=imported.facts,
        phases=tuple(_phase(name, found, known.get(name)) for name, found in phases.items()),
        series=tuple(b.series for b in known.values() if b.series is not None),
        source=source,
    )


def _phase(operation: str, metrics: dict[str, float], known: Background | None) -> PhaseRow:
    known = known or Background(0)
    return PhaseRow(
        operation=operation,
        elapsed_ns=known.elapsed_ns or None,
        cache_share=None,
        harness_ns_per_op=None,
        cpu_user_ns=known.cpu_user_ns,
        cpu_system_ns=known.cpu_system_ns,
        device_read_bytes=None,
        device_write_bytes=None,
        device_flushed_write_bytes=None,
        depth_reached_mean=None,
        workers=[],
        caveats=(),
        metrics=metrics,
        nature=Nature(known.kind, known.access, known.io_size_bytes),
    )


def _caveats(reading: Reading, constants: dict[str, str], compared: str) -> Iterator[Caveat]:
    table, runs = reading.table, reading.runs
    yield Caveat(
        "imported",
        f"imported from {table.path.name} (SHA-256 {table.sha256[:16]}…): {len(runs)} values"
        + ("." if len(table.origins) > 1 else f" in {_line_span(runs[0].line, runs[-1].line)}."),
        "Nothing of it was measured by iolab; each trial keeps the lines it came from.",
    )
    yield from _about_order(reading, compared)
    yield Caveat(
        "environment_unknown",
        "machine, kernel, device, file system and cache are known only as far as the table says.",
        "See its source before applying an answer to your machine.",
    )
    yield from _about_runs(reading)
    yield from _about_confounding(reading, compared)
    yield from _about_cells(reading, constants)


def _line_span(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _about_order(reading: Reading, compared: str) -> Iterator[Caveat]:
    """Say that the order is not known, or that levels were not measured in turns."""
    spans: dict[str, list[int]] = defaultdict(list)
    for value in reading.runs:
        began = value.background.started_at_unix_ns if value.background is not None else 0
        if not began:
            break
        spans[dict(value.levels).get(compared, "")].append(began)
    else:
        several = sorted((min(own), max(own)) for own in spans.values())
        if len(several) > 1 and all(a[1] < b[0] for a, b in pairwise(several)):
            yield Caveat(
                "order_in_blocks",
                f"all runs of one {compared} were made before the first of the next, as their"
                " start times say; levels are compared as independent samples.",
                "Warming up and drift look like a difference: measure the levels in turns.",
            )
        return
    yield Caveat(
        "order_unknown",
        "the order of the runs is not known; levels are compared as independent samples, never"
        " paired.",
        "If all runs of one level came first, warming up and drift look like a difference.",
    )


def _about_runs(reading: Reading) -> Iterator[Caveat]:
    counts = Counter(value.place for value in reading.runs)
    single = sum(count == 1 for count in counts.values())
    if single:
        every = single == len(counts)
        yield Caveat(
            "single_runs",
            (
                "every value is a single run"
                if every
                else f"{single} of {len(counts)} cells hold a single run"
            )
            + ": there is no interval, and no verdict but undecided.",
            "Measure each several times, in random order.",
        )
    if reading.are_runs_numbered_here:
        yield Caveat(
            "runs_counted",
            "no column says which run a row is; rows of the same thing were counted as runs.",
            "Name the column with --map run=COLUMN.",
        )
    derived = [value for value in reading.values if value.kind == "derived"]
    if derived:
        yield Caveat(
            "derived_rows",
            f"{_lines([v.line for v in derived])}: not printed but worked out from other numbers;"
            " left out.",
        )


def _about_confounding(reading: Reading, compared: str) -> Iterator[Caveat]:
    """Warn of a factor that never varies while the compared one stays."""
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for value in reading.runs:
        levels = dict(value.levels)
        for name, level in levels.items():
            if name != compared and compared in levels:
                seen[name][level].add(levels[compared])
    compared_levels = {dict(value.levels).get(compared) for value in reading.runs}
    for name, found in seen.items() if len(compared_levels) > 1 else ():
        if len(found) > 1 and all(len(levels) == 1 for levels in found.values()):
            yield Caveat(
                "confounded",
                f"each {name} was measured with one {compared} only, so that nobody can tell which"
                " of the two makes a difference.",
                f"Measure every {compared} with the same {name}.",
            )


def _about_cells(reading: Reading, constants: dict[str, str]) -> Iterator[Caveat]:
    if reading.missing:
        yield Caveat(
            "missing_values",
            f"{counted(len(reading.missing), 'row')} without a value ({_lines(reading.missing)}).",
            "Cells with fewer than half of the runs of the fullest are not pooled.",
        )
    if reading.unexplained:
        yield Caveat(
            "missing_unexplained",
            f"{len(reading.unexplained)} values are missing without a reason"
            f" ({_lines(reading.unexplained)}).",
            "Write the reason into a column notes.",
        )
    noted = [value for value in reading.runs if value.notes]
    if noted:
        common = Counter(value.notes for value in noted).most_common(1)[0][0]
        yield Caveat(
            "noted_values",
            f"{len(noted)} values carry a note of the source, most often: {common[:160]}.",
        )
    averages = list(
        dict.fromkeys(v.operation for v in reading.runs if is_average_of_operations(v.operation))
    )
    if averages:
        yield _average_caveat(reading, averages, averages_remark(constants))
    ratios = [v for v in reading.runs if v.quantity is None and _RATIO.fullmatch(v.unit.lower())]
    if ratios:
        yield Caveat(
            "ratios_without_base",
            f"{len(ratios)} values are ratios without their base case"
            f" ({_lines([v.line for v in ratios])}).",
            "Import the absolute values.",
        )
    yield from _about_unjudged([value for value in reading.runs if value.quantity is None])


def _about_unjudged(unjudged: list[Value]) -> Iterator[Caveat]:
    times = [value for value in unjudged if is_time(value.unit)]
    others = [value for value in unjudged if not is_time(value.unit)]
    said: list[str] = []
    if others:
        said.append("iolab does not know whether more of their unit is better:" + _amounts(others))
    if times:
        said.append("they are of no statistic that iolab judges:" + _amounts(times))
    if said:
        known = f"Known units are {', '.join(KNOWN_UNITS)}; names of metrics are units, too."
        statistics = (
            "Latencies are judged as mean, p50, p90, p99, p99.9 or longest: say in the operation"
            " which one it is, as in 'read mean latency'."
        )
        hints = [known] * bool(others) + [statistics] * bool(times)
        yield Caveat(
            "not_judged", f"kept but not judged, since {', and '.join(said)}.", " ".join(hints)
        )


def _amounts(values: list[Value]) -> str:
    said = [f"{v.operation} {v.printed} {v.unit}".strip() for v in values[:_SHOWN]]
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f" {', '.join(said)}{more}"


def _average_caveat(reading: Reading, averages: list[str], remark: str) -> Caveat:
    notes = dict.fromkeys(v.notes for v in reading.runs if v.operation in averages and v.notes)
    detail = [*list(notes)[:1], *([remark] if remark else [])]
    names = ", ".join(f"'{name}'" for name in averages[:_SHOWN])
    return Caveat(
        "mixed_average",
        f"{names} averages operations of different kinds"
        + (f" ({'; '.join(detail)})" if detail else ""),
        "An average over operations is ruled by the fastest of them; judge each operation alone.",
    )


def _lines(lines: list[int] | tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:_LINES_SHOWN]))
    more = f" and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    return f"line{'' if len(lines) == 1 else 's'} {shown}{more}"
