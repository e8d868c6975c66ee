"""Facts about a study that a paper has to state: a methods paragraph, an environment table, a
citation.

Everything comes from what is stored (and, for the tests that were used, from the verdict): the
paragraph never says more than the study knows. Left out: versions of the libraries that judged,
which are not stored; they follow from the version of iolab.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Final, TypeAlias, cast

from iolab import units
from iolab.report.scope import stored_spec
from iolab.stats.caveats_of_simulation import MECHANISM
from iolab.stats.findings import kind_of
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.sentence import margin_text, source_text
from iolab.stats.verdict import StudyVerdict
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData
from iolab.study.factors import find_factor, is_factor
from iolab.study.recordings import recordings_of_spec
from iolab.wording import counted, profile_text, sentence_case

Table: TypeAlias = Mapping[str, object]
"""A table of a study file."""
NAMES_MAX: Final = 8
"""More levels than this are counted, not listed."""
HELD: Final = (
    ("fs", "file system {}"),
    ("mount_options", "mount options {}"),
    ("scheduler", "scheduler {}"),
    ("engine", "engine {}"),
    ("cache", "{} page cache before each trial"),
    ("memory_limit", "memory limit {}"),
)
"""Settings that a paper names, and how; the rest is in the environment table."""
NOT_SIMULATED: Final = ("cache", "memory_limit", "engine")
"""Settings that mean nothing in a simulation: it has no page cache, and engines submit alike."""
NOTHING: Final = ("", "none", "default", "defaults")
VALUES_MAX: Final = 3
"""A fact with more values than this is counted."""
DEVICE_FACTS: Final = {
    "model": "device model",
    "size_sectors": "device size",
    "queue.rotational": "rotational",
    "queue.logical_block_size": "logical block size",
    "queue.physical_block_size": "physical block size",
    "queue.nr_requests": "requests in the queue",
    "queue.write_cache": "write cache",
    "driver_tags": "requests in the driver",
    "queue.scheduler": "schedulers, the active one in brackets",
    "below.devices": "devices below",
}
FACTS: Final = {
    "os.name": "operating system",
    "kernel.release": "kernel",
    "cpu.model": "processor",
    "cpu.count": "processors",
    "cpu.governor": "frequency governor",
    "cpu.no_turbo": "turbo switched off",
    "cpu.smt": "simultaneous multithreading",
    "clocksource": "clock source",
    "memory.total": "memory",
    "memory.copy_bytes_per_s": "memory copied by all processors (bytes/s)",
    "memory.swap": "swap",
    "memory.transparent_hugepages": "transparent huge pages",
    "virtualization": "virtualisation",
    "fs.type": "file system",
    "fs.options": "mount options in effect",
    "fs.size_bytes": "file system size (bytes)",
    "fs.block_bytes": "file system block (bytes)",
}
"""Facts of the agent that a paper's table shows, by name; those of devices and tools are added."""


def methods_paragraph(data: StudyData, verdict: StudyVerdict) -> str:
    """Return the paragraph: what ran, how often, in which order, how it was judged, on what."""
    if data.study.kind == "imported":
        said = [_imported(data), *_judged(data, verdict)]
    else:
        said = [
            *_question(data),
            *_workloads(data),
            _order(data, verdict),
            *_care(data),
            *_judged(data, verdict),
            *_checked(verdict),
            _machine(data),
        ]
    return " ".join(text for text in said if text)


def _imported(data: StudyData) -> str:
    return (
        f"{source_text(data.study)}; iolab {data.study.iolab_version} measured nothing of it. The"
        " order of the runs is not known, and printed means are not runs: they were checked"
        " against the runs."
    )


def _question(data: StudyData) -> Iterator[str]:
    study = data.study
    where = f"testbed {study.testbed}"
    if study.is_simulated:
        where += ", a simulated stack: deterministic for a seed, no hardware"
    with_what = f"with iolab {study.iolab_version} ({where})"
    if not study.is_comparison:
        what = f"{study.compared_factor} = {study.baseline}" if study.compared_factor else ""
        yield f"{what or 'One configuration'} was measured {with_what}."
        return
    levels = study.factors.get(study.compared_factor, [])
    yield (
        f"Levels of {study.compared_factor} were compared with {study.baseline}"
        f" ({_listed(levels)}) {with_what}."
    )
    others = [
        f"{name} ({_listed(levels)})"
        for name, levels in study.factors.items()
        if name != study.compared_factor and len(levels) > 1
    ]
    if not others:
        return
    met, possible = _combinations(data)
    if met == possible:
        yield f"Every level met every level of {_joined(others)}."
    else:
        yield f"Of its {possible} combinations with {_joined(others)} {met} were measured."


def _combinations(data: StudyData) -> tuple[int, int]:
    """Count the combinations of levels that some workload has, and those there could be."""
    varied = {name for name, levels in data.study.factors.items() if len(levels) > 1}
    met = {tuple(t.levels.get(name) for name in varied) for t in data.trials}
    whole = {levels for levels in met if None not in levels}
    if not whole:  # Every workload lacks a factor.
        return 1, 1
    return len(whole), math.prod(len(data.study.factors[name]) for name in varied)


def _workloads(data: StudyData) -> Iterator[str]:
    """Say what ran, as far as the stored study file can still be read."""
    found = stored_spec(data.study).get("workloads")
    tables = cast("list[object]", found) if isinstance(found, list) else []
    program = data.study.command[0] if data.study.command else ""
    said = [
        _workload(_with_operations(cast("Table", table), data), program)
        for table in tables
        if isinstance(table, dict)
    ]
    if not said:
        said = list(data.study.workloads)
    yield f"Workload{'s' if len(said) > 1 else ''}: {'; '.join(said)}."


def _with_operations(table: Table, data: StudyData) -> Table:
    """The table of a workload; of one in another program's words with what was measured of it."""
    if "dialect" not in table or "operations" in table:
        return table
    name = table.get("name")
    rows = [one for one in data.measurements if one.workload == name] or (
        data.measurements if len(data.study.workloads) == 1 else []
    )
    found = list(dict.fromkeys(one.operation for one in rows))
    return {**table, "operations": found} if found else table


def _workload(table: Table, program: str) -> str:
    """Describe one workload of a study file in a few words; `program` is that of its command."""
    kind = program or str(table.get("dialect") or table.get("kind", ""))
    name = str(table.get("name", kind))
    tests = table.get("operations") or table.get("tests")
    parts = list[str]()
    if isinstance(tests, list):
        parts.append(f"{kind} tests {', '.join(map(str, cast('list[object]', tests)))}")
    for key, form in (
        ("file_size", "file of {}"),
        ("duration", "{} long"),
        ("workers", "{} workers"),
    ):
        if table.get(key):
            parts.append(form.format(_readable(key, table[key])))
    streams = table.get("streams")
    if isinstance(streams, list):
        listed = cast("list[object]", streams)
        parts += [_stream(cast("Table", one)) for one in listed if isinstance(one, dict)]
    return f"{name} ({'; '.join(parts)})" if parts else name


def _readable(key: str, value: object) -> object:
    """Write a duration as people do: ``1.5 s`` for ``1s500ms``."""
    if key != "duration":
        return value
    try:
        return format_ns(units.parse_duration_ns(str(value)))
    except ValueError:
        return value


def _stream(table: Table) -> str:
    keys = ("pattern", "direction", "record_size")
    text = " ".join(str(table[key]) for key in keys if table.get(key))
    depth = f", depth {table['depth']}" if table.get("depth") else ""
    return f"stream {table.get('name', '')}: {text}{depth}"


def _order(data: StudyData, verdict: StudyVerdict) -> str:
    study, trials = data.study, verdict.trials
    treatments = len({(t.workload, *sorted(t.levels.items())) for t in data.trials})
    hard = [
        name
        for name, levels in study.factors.items()
        if len(levels) > 1 and is_factor(name) and find_factor(name).is_hard_to_change
    ]
    plots = f"; {_joined(hard)} as whole plots, in a random order of their own" if hard else ""
    order = f"in a fresh random order (seed {study.seed}{plots})"
    if study.command:
        order = f"in the order of the table that `{study.command[0]}` prints (seed {study.seed})"
    unfinished = trials.interrupted + trials.not_run
    rest = f", {trials.failed} failed" if trials.failed else ""
    rest += f", {unfinished} did not finish" if unfinished else ""
    return (
        f"{counted(study.rounds_planned, 'round')} {'was' if study.rounds_planned == 1 else 'were'}"
        f" planned, each running {counted(treatments, 'treatment')} once {order};"
        f" {trials.ok} of {counted(trials.planned, 'trial')}"
        f" finished{rest}{_when(data)}."
    )


def _when(data: StudyData) -> str:
    """Say when trials ran; times of a simulation mean nothing."""
    started = [t.started_at_unix_ns for t in data.trials if t.started_at_unix_ns]
    if not started or data.study.is_simulated:
        return ""
    first, last = (datetime.fromtimestamp(t / 1e9, tz=UTC) for t in (min(started), max(started)))
    days = (
        f"{first:%Y-%m-%d}"
        if first.date() == last.date()
        else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    )
    return f" ({days}, UTC)"


def _care(data: StudyData) -> Iterator[str]:
    """Say what was held constant and what the harness cost."""
    study = data.study
    held = [
        form.format(study.settings[name])
        for name, form in HELD
        if study.settings.get(name, "") not in NOTHING
        and not (study.is_simulated and name in NOT_SIMULATED)
    ]
    direct = study.settings.get("direct")
    if direct in ("true", "false"):
        held.append("direct I/O" if direct == "true" else "buffered I/O")
    if held:
        yield f"Held constant: {', '.join(held)}."
    costs = [cost for d in data.phase_details if (cost := d.get("harness_ns_per_op"))]
    if costs:
        yield (
            f"The load generator itself costs {median(costs):.0f} ns per operation (median,"
            " measured with a target that does nothing)."
        )


def _judged(data: StudyData, verdict: StudyVerdict) -> Iterator[str]:
    """Name the unit of analysis, the tests and intervals that were really used, the rule."""
    unit = "trial" if verdict.is_paired else "run"
    metrics = [
        METRIC_BY_NAME[name].label for name in dict.fromkeys(c.metric for c in verdict.headline)
    ]
    of_what = f" of {_joined(metrics)}" if metrics else ""
    yield f"The unit of analysis is one {unit}, never one I/O."
    if not data.study.is_comparison:
        yield f"Intervals are 95 % Student's t on ln-values over {unit}s."
        return
    if verdict.is_paired:
        yield (
            f"Levels were compared with the baseline by the ratio{of_what}, paired by round inside"
            " each cell and averaged over cells on the ln scale; intervals are Student's t over"
            " rounds."
        )
    else:
        yield (
            f"Levels were compared with the baseline by the ratio{of_what} on the ln scale, as"
            " independent samples of runs (Welch's t); for the pooled comparison the cells of a run"
            " were averaged first."
        )
    yield _families(verdict)
    margin = margin_text(verdict.margin)
    yield (
        f"A verdict is 'same' if the 90 % interval lies within ±{margin} (as a ratio), 'trivial' if"
        " moreover the 95 % interval excludes 1, 'better' or 'worse' if the 95 % interval lies"
        " wholly beyond the margin, else 'undecided'; with fewer than three rounds 'undecided', and"
        " 'depends' where cells disagree beyond the margin (F test, p < .01)."
    )
    if len({c.is_direct for c in verdict.cells}) > 1:
        yield "Buffered and direct results are never pooled."


def _families(verdict: StudyVerdict) -> str:
    """Say how families of comparisons were adjusted, and what stands beside the verdict."""
    headline, look = verdict.headline, verdict.closer
    parts = list[str]()
    if len(headline) > 1:
        parts.append(
            "Words of the headline are adjusted over all pairs of levels (Shaffer; Holm for"
            " 'same'), so that none depends on the baseline; intervals are not"
        )
    if verdict.cells:
        parts.append(
            f"{'s' if parts else 'S'}ingle cells ({len(verdict.cells)}) are exploratory"
            " (Benjamini-Hochberg, 5 %)"
        )
    text = f"{'; '.join(parts)}." if parts else ""
    beside = [
        name
        for is_used, name in (
            (look.joint, "joint intervals against the baseline (Bonferroni)"),
            (look.winner_sets, "Hsu's comparison with the best"),
            (look.pairs, "all pairs with Shaffer's adjustment"),
            (look.factor_effects, "an analysis of variance of the factors (omega squared)"),
            (look.quantile_effects, "Hodges-Lehmann estimates of the quantiles of latency"),
            (look.robust, "order-statistic and BCa bootstrap intervals"),
        )
        if is_used
    ]
    return f"{text} Beside the verdict stand {_joined(beside)}.".strip() if beside else text


def _checked(verdict: StudyVerdict) -> Iterator[str]:
    """Say what was checked of trials: order, steadiness, looks."""
    quoted = (f.says for f in verdict.caveats if kind_of(f.kind).is_in_methods)
    yield from map(sentence_case, quoted)
    if verdict.position is not None:
        change = (verdict.position.ratio - 1) * 100
        yield (
            f"The place of a trial inside its round was tested: last against first {change:+.1f} %,"
            f" p = {verdict.position.p:.2g}."
        )
    known = [c for c in verdict.closer.time_courses if c.n_trials > c.shapes.get("too_short", 0)]
    if known:
        trials = sum(c.n_trials - c.shapes.get("too_short", 0) for c in known)
        steady = sum(c.steady_trials for c in known)
        yield (
            f"Of {trials} series of throughput long enough to tell, {steady} end in SNIA's steady"
            " state."
        )


def _machine(data: StudyData) -> str:
    if data.study.is_simulated:
        titles = [profile_text(v) for k, v in data.facts.items() if k.startswith("sim.profile.")]
        return f"Simulated device: {'; '.join(titles)}." if titles else ""
    return f"Machine: {machine_text(data)}{_device(data)}."


def _device(data: StudyData) -> str:
    models = _device_values(data, "model")
    return f", device {' or '.join(models)}" if models else ""


def environment_rows(data: StudyData) -> list[tuple[str, str]]:
    """Return the environment table: what it is, and its value or values."""
    study = data.study
    rows = [("iolab", study.iolab_version), ("testbed", study.testbed)]
    if study.kind == "imported":
        told = [(n.removeprefix("source."), v) for n, v in data.facts.items() if n != "source.file"]
        return [("source", source_text(study)), ("iolab", study.iolab_version), *told]
    rows += [
        (f"recording of {name}", f"{one.file}: {one.identity}")
        for name, one in recordings_of_spec(study.spec_toml)
    ]
    if study.is_simulated:
        return rows + [(n, profile_text(v)) for n, v in data.facts.items() if n.startswith("sim.")]
    rows += [(label, text) for name, label in FACTS.items() if (text := _fact(data, name))]
    for name, label in DEVICE_FACTS.items():
        values = _device_values(data, name)
        if values:
            rows.append((label, _few(values)))
    systems = {*study.factors.get("fs", []), study.settings.get("fs", "")}
    rows += [
        (f"mkfs of {fs}", text)
        for fs in sorted(systems)
        if (text := _fact(data, f"tool.mkfs.{fs}"))
    ]
    # What a simulation did is no change of the machine.
    varying = len(data.varying_facts.keys() - {MECHANISM})
    rows.append(("facts that changed between trials", f"{varying} of {varying + len(data.facts)}"))
    return rows


def _fact(data: StudyData, name: str) -> str:
    if name in data.facts:
        return data.facts[name]
    return _few(list(dict.fromkeys(data.varying_facts.get(name, {}).values())))


def _device_values(data: StudyData, fact: str) -> list[str]:
    """Values of a fact over all devices: loop devices change their numbers between trials."""
    found = dict[str, None]()
    for name, value in data.facts.items():
        if _is_of_device(name, fact):
            found[_sized(fact, value)] = None
    for name, values in data.varying_facts.items():
        if _is_of_device(name, fact):
            found |= dict.fromkeys(_sized(fact, value) for value in values.values())
    return list(found)


def _is_of_device(name: str, fact: str) -> bool:
    parts = name.split(".", 2)
    return len(parts) == 3 and parts[0] == "device" and parts[2] == fact


def _sized(fact: str, value: str) -> str:
    """Write sectors as bytes: kernel sectors have 512 bytes (linux/blk_types.h)."""
    if fact == "size_sectors" and value.isdecimal():
        return f"{int(value) * 512} bytes"
    return value


def _few(values: Sequence[str]) -> str:
    if len(values) > VALUES_MAX:
        return f"{len(values)} different values, such as {values[0]}"
    return " or ".join(values)


def citation_bibtex(data: StudyData) -> str:
    """Return BibTeX entries for the program and for the study itself."""
    study = data.study
    made = datetime.fromtimestamp(study.created_at_unix_ns / 1e9, tz=UTC)
    key = "".join(c for c in study.study_id[:8] if c.isalnum())
    source = f"study {study.study_id}, plan {study.plan_digest[:16]}, seed {study.seed}"
    return (
        "@misc{iolab,\n"
        "  title        = {{iolab}: a laboratory for storage {I/O} on {Linux}},\n"
        f"  howpublished = {{Computer program, version {_tex(study.iolab_version)}}},\n"
        f"  year         = {{{made:%Y}}}\n"
        "}\n"
        f"@misc{{iolab-{key},\n"
        f"  title        = {{{{{_tex(study.name)}}}: measurements and verdicts}},\n"
        f"  howpublished = {{{_tex(source)}}},\n"
        f"  year         = {{{made:%Y}}},\n"
        f"  month        = {{{made:%m}}}\n"
        "}\n"
    )


_TEX: Final = {c: f"\\{c}" for c in "{}$&#_%"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "\n": " ",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)


def _listed(names: Sequence[str]) -> str:
    return _joined(names) if len(names) <= NAMES_MAX else f"{len(names)} levels"


def _joined(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
