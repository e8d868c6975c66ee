"""The compiled half: typed workload builders, histograms, in-process targets, the simulator.

Everything crosses as JSON text with a type of `iolab.protocol`; a stack is a text that only the
simulator reads. `iolab.json_text` writes and reads such texts.
"""

from collections.abc import Callable, Mapping, Sequence

from iolab.json_text import JsonText
from iolab.protocol import (
    Capabilities,
    CommandPlan,
    Demand,
    FileUse,
    Histogram,
    ImportedConfig,
    ImportOptions,
    IozoneRequest,
    Judgement,
    MixedRequest,
    Operation,
    PatternFoundAnswer,
    PatternQuestion,
    PhaseRecord,
    Prediction,
    ProbeFindings,
    Profile,
    Record,
    RecordedIdentity,
    Refusal,
    ReplayTwin,
    SchedulerBook,
    SimulatedLimits,
    SimulatedStack,
    TraceConvertedAnswer,
    TraceFormat,
    TraceMeasuredAnswer,
    TracePlotAnswer,
    TracesCompared,
    TraceShownAnswer,
    TraceShowOptions,
    TrialSpec,
    Workload,
)

__all__ = [
    "__version__",
    "dialect_file",
    "dialect_help",
    "dialect_parse",
    "dialect_reference",
    "dialect_render",
    "dialects",
    "extension_schema",
    "histogram_quantiles",
    "iozone_tests",
    "iozone_workload",
    "mixed_workload",
    "pattern_calls",
    "pattern_of",
    "patterns",
    "recording_identity",
    "run_in_process",
    "sim_describe",
    "sim_import_config",
    "sim_knob_names",
    "sim_knobs",
    "sim_limits",
    "sim_predict",
    "sim_probe",
    "sim_profile",
    "sim_profile_names",
    "sim_profile_stack",
    "sim_refusals",
    "sim_replay",
    "sim_scenarios",
    "sim_schedulers",
    "sim_software",
    "sim_software_names",
    "sim_stack",
    "sim_trace",
    "simulate_trial",
    "trace_column_kinds",
    "trace_columns",
    "trace_convert",
    "trace_diff",
    "trace_formats",
    "trace_output_of",
    "trace_perf_ring",
    "trace_plot",
    "trace_ring_pages",
    "trace_show",
    "trace_stages",
    "workload_demand",
    "workload_file",
    "workload_file_anchored",
    "workload_file_uses",
    "workload_operations",
    "workload_refusals",
]

__version__: str

_TracedFiles = Sequence[tuple[str, Callable[[int], bytes] | None]]
_Traced = (
    tuple[_TracedFiles, Sequence[str]] | tuple[_TracedFiles, Sequence[str], tuple[int, int] | None]
)
"""Files of a trace, devices and part that are wanted of it: see `trace_show`."""

def workload_demand(workload_json: JsonText[Workload]) -> JsonText[Demand | None]:
    """Return what the programs of a workload may take of a disk at most.

    Parameters
    ----------
    workload_json : workload spec (docs/design/0002-agent-protocol.md).

    Returns
    -------
    str
        JSON: `Demand` of crates/iolab-workload, sizes in bytes; null if nothing runs a program.

    Raises
    ------
    StudyError : the text is no workload description.
    """

def recording_identity(path: str) -> JsonText[RecordedIdentity]:
    """Size and digest of the file of a recorded stream.

    Parameters
    ----------
    path : an ordinary file.

    Returns
    -------
    str
        JSON: `RecordedIdentity` of crates/iolab-workload, size in bytes.

    Raises
    ------
    StudyError : it cannot be read, or is no ordinary file.
    """

def workload_file_anchored(folder: str, text: str) -> str:
    """Text of a workload file in which the names of recorded streams are whole.

    Parameters
    ----------
    folder : directory from which the text names them.
    text : what the file holds; one that is no TOML stays as it is.

    Returns
    -------
    str
        The text, with as many lines.
    """

def workload_file(subject: str, text: str) -> JsonText[Workload]:
    """Description of the workload that a workload file (TOML) says.

    Parameters
    ----------
    subject : name of the file, for messages and for a workload without a name.
    text : what the file holds.

    Returns
    -------
    str : the description as JSON.

    Raises
    ------
    DialectError : the text is no TOML or no workload; the message has line, key and remedy.
    """

def iozone_workload(spec_json: JsonText[IozoneRequest]) -> JsonText[Workload]:
    """Workload spec of IOzone's tests.

    Parameters
    ----------
    spec_json : ``{"tests", "file_bytes", "io_size_bytes", "workers", "engine", "workers_as",
        "access", "durability", "fsync", "seed", "stride", "depth", "content"}``; sizes in bytes.

    Returns
    -------
    str : workload spec, version 1.

    Raises
    ------
    iolab.errors.StudyError : the values do not describe a workload.
    """

def mixed_workload(spec_json: JsonText[MixedRequest]) -> JsonText[Workload]:
    """Workload spec of several streams that run side by side for a fixed time.

    Parameters
    ----------
    spec_json : ``{"name", "duration_ns", "engine", "workers_as", "seed", "access", "streams": [
        {"name", "read_share", "pattern", "io_size_bytes", "depth", "workers", "file_bytes",
        "rate_ops_per_s", "fsync_every", "think_ns", "priority"}]}``; a priority is
        ``{"class": "rt", "level": 0}`` (also ``be``, ``idle``) or null.

    Returns
    -------
    str : workload spec, version 1.

    Raises
    ------
    iolab.errors.StudyError : the values do not describe a workload.
    """

def workload_operations(workload_json: JsonText[Workload]) -> JsonText[list[Operation]]:
    """Operations of a workload description, in the order of its phases.

    Parameters
    ----------
    workload_json : workload spec, version 1, as the builders and dialects make it.

    Returns
    -------
    str : JSON list of ``{"id", "engine", "kind", "reads", "writes", "io_size_bytes", "access"}``;
        `access` is that of the description, before an engine's default.

    Raises
    ------
    iolab.errors.StudyError : the text is no workload description.
    """

def workload_file_uses(workload_json: JsonText[Workload]) -> JsonText[list[FileUse]]:
    """Uses of the files of a workload: how each is opened first, and whether it is changed.

    Parameters
    ----------
    workload_json : workload spec, version 1, as the builders and dialects make it.

    Returns
    -------
    str : JSON list, in the order in which the files are first named; of a tenant with many files
        their directory.

    Raises
    ------
    iolab.errors.StudyError : the text is no workload description.
    """

def iozone_tests() -> list[str]:
    """Names of the IOzone tests that exist, in the order in which they run.

    Returns
    -------
    list of str, for instance ``write``.
    """

def patterns() -> list[str]:
    """Names of the access patterns of streams.

    Returns
    -------
    list of str, for instance ``sequential``.
    """

def histogram_quantiles(histogram_json: JsonText[Histogram], quantiles: list[float]) -> list[float]:
    """Quantiles of a recorded histogram, at place (count + 1) x q, between values in proportion.

    Parameters
    ----------
    histogram_json : HISTOGRAM of the agent protocol.
    quantiles : each in [0, 1].

    Returns
    -------
    list of float, in the histogram's unit (ns), one per quantile.
    """

def run_in_process(workload_json: JsonText[Workload]) -> JsonText[list[PhaseRecord]]:
    """Run a workload on the null or memory target inside this process.

    Parameters
    ----------
    workload_json : workload spec whose engine is ``null`` or ``memory``.

    Returns
    -------
    str : the ``phases`` of a record.
    """

def sim_stack(subject: str, text: str) -> str:
    """Stack in a stack file, checked by building it once.

    Parameters
    ----------
    subject : names the file in messages.
    text : TOML; docs/reference/stack-file.md.

    Returns
    -------
    str : the stack as JSON, which the other functions take.

    Raises
    ------
    iolab.errors.StudyError : not a stack; names the place, or the nearest valid name.
    """

def sim_profile_stack(profile: str) -> str:
    """Stack of a built-in profile: a queue in front of the device.

    Parameters
    ----------
    profile : one of `sim_profile_names`.

    Returns
    -------
    str : the stack as JSON.

    Raises
    ------
    iolab.errors.StudyError : no such profile; names the nearest.
    """

def sim_describe(stack_json: str) -> JsonText[SimulatedStack]:
    """Facts about a stack before anything runs on it.

    Parameters
    ----------
    stack_json : what `sim_stack` or `sim_profile_stack` gave.

    Returns
    -------
    str : ``{"name", "title", "capacity_bytes", "is_rotational", "scheduler", "facts",
        "provenance"}``; ``provenance`` counts the parameters of all profiles by tag (``code``,
        ``doc``, ``meas``, ``fit``, ``assume``).

    Raises
    ------
    iolab.errors.StudyError : the stack cannot be built.
    """

def sim_import_config(
    files: list[tuple[str, str]], options_json: JsonText[ImportOptions]
) -> JsonText[ImportedConfig]:
    """Lines that an administrator of Solaris typed, and the stack that they make.

    Parameters
    ----------
    files : name and text of each; they are read in this order.
    options_json : what lines do not say: profile of the disks, memory, release, name.

    Returns
    -------
    str : ``{"rows", "fs", "stack", "problem", "remedy"}``; a row for each thing that a line says;
        ``stack`` is the text of a stack file, or null, and then ``problem`` says why.

    Raises
    ------
    iolab.errors.StudyError : a line cannot be meant so; quotes it, with the manual's range.
    """

def sim_knob_names() -> list[str]:
    """Names of the knobs of a simulated queue, the tunables of its scheduler aside.

    Returns
    -------
    list of str, for instance ``nr_requests``.
    """

def sim_refusals(stack_json: str, trial_json: JsonText[TrialSpec]) -> JsonText[list[Refusal]]:
    """Everything in a trial that a simulated stack cannot do.

    Parameters
    ----------
    stack_json : what `sim_stack` or `sim_profile_stack` gave.
    trial_json : trial spec of the agent protocol; only ``workload`` must be there.

    Returns
    -------
    str : list of ``{"code", "what", "phase", "tenant", "reason", "hint"}``, in the order of phases;
        empty if it can run.

    Raises
    ------
    iolab.errors.StudyError : no workload, no stack, or a knob that it does not have.
    """

def workload_refusals(
    abilities_json: JsonText[Mapping[str, Capabilities]],
    workload_json: JsonText[Workload],
) -> JsonText[list[Refusal]]:
    """Everything in a workload that its engines cannot do.

    Parameters
    ----------
    abilities_json : name of each engine to its abilities, as ``iolab-agent names`` prints them.
    workload_json : workload spec, version 1.

    Returns
    -------
    str : list as that of `sim_refusals`; an engine that is not named has no limits.

    Raises
    ------
    iolab.errors.StudyError : no workload.
    """

def sim_limits() -> JsonText[SimulatedLimits]:
    """Facts of all simulated stacks, for `make docs`.

    Returns
    -------
    str : ``{"limits", "levels", "alike", "flags"}`` as in crates/iolab-sim/src/limits.rs.
    """

def sim_knobs(stack_json: str, knobs_json: JsonText[Mapping[str, str]]) -> JsonText[dict[str, str]]:
    """Check knobs against a stack and read them back as a trial would.

    Parameters
    ----------
    stack_json : what `sim_stack` or `sim_profile_stack` gave.
    knobs_json : texts by name, ``{"scheduler": "bfq", "bfq.slice_idle": "8"}``; units are those of
        sysfs.

    Returns
    -------
    str : the same as the scheduler has them, truncated as in the kernel; tunables of other
        schedulers are left out.

    Raises
    ------
    iolab.errors.StudyError : an unknown knob, or a value out of range.
    """

def sim_trace(stack_json: str, trial_json: JsonText[TrialSpec]) -> str:
    """Simulate one trial and keep what the block layer does.

    Parameters
    ----------
    stack_json : from `sim_stack` or `sim_profile_stack`.
    trial_json : trial spec of the agent protocol.

    Returns
    -------
    str : CSV ``ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu``, as recordings of the kernel;
        ns from the first event, 512-byte sectors.

    Raises
    ------
    iolab.errors.StudyError : the stack, a knob or the workload cannot be simulated.
    """

def simulate_trial(
    stack_json: str,
    trial_json: JsonText[TrialSpec],
    should_stop: Callable[[], bool] | None,
) -> JsonText[Record]:
    """Run one trial in virtual time; the interpreter is free meanwhile.

    Parameters
    ----------
    stack_json : what `sim_stack` or `sim_profile_stack` gave.
    trial_json : trial spec of the agent protocol; ``stack`` must be null.
    should_stop : asked now and then; true ends the trial as ``interrupted``.

    Returns
    -------
    str : record of the agent protocol, times in simulated ns except ``started_at_unix_ns`` and
        ``elapsed_ns``; with ``simulation``: ``{"event_hash", "counters"}``.

    Raises
    ------
    iolab.errors.StudyError : the workload, a knob or the stack cannot be simulated.
    """

def sim_profile_names() -> list[str]:
    """Names of the built-in profiles.

    Returns
    -------
    list of str, sorted.
    """

def sim_profile(name: str) -> JsonText[Profile]:
    """One built-in profile with unit, provenance and source of every number.

    Parameters
    ----------
    name : one of `sim_profile_names`.

    Returns
    -------
    str : ``{"name", "kind", "title", "notes", "parameters": {NAME: {"value", "unit", "tag",
        "source"}}, "inner"}``; ``inner`` is the profile of the device inside, of wrappers only.

    Raises
    ------
    iolab.errors.StudyError : no such profile; names the nearest.
    """

def sim_software_names() -> list[str]:
    """Names of the built-in tables of what schedulers cost a processor.

    Returns
    -------
    list of str, sorted.
    """

def sim_software(name: str) -> JsonText[Profile]:
    """One table of software costs with unit, provenance and source of every number.

    Parameters
    ----------
    name : one of `sim_software_names`.

    Returns
    -------
    str : as `sim_profile`; parameters are ``SCHEDULER.CALL``, ``timer`` and ``switch``.

    Raises
    ------
    iolab.errors.StudyError : no such table; names the nearest.
    """

def sim_schedulers() -> JsonText[list[SchedulerBook]]:
    """Every simulated scheduler with its tunables.

    Returns
    -------
    str : list of ``{"name", "framework", "tunables": [{"name", "unit", "default", "min", "max",
        "about"}]}``; ``framework`` is ``legacy`` or ``blk-mq``, defaults are those of a rotational
        device at 1000 clock ticks per second.
    """

def sim_scenarios(subject: str, text: str) -> JsonText[list[Judgement]]:
    """Run every scenario of a scenario file.

    Parameters
    ----------
    subject : names the file in messages.
    text : YAML.

    Returns
    -------
    str : list of ``{"id", "scheduler", "title", "expected", "obtained", "is_ok"}``.

    Raises
    ------
    iolab.errors.StudyError : not a scenario file; names the field.
    """

def sim_predict(
    recording: tuple[str, str, str],
    scheduler: str,
    tunables_json: JsonText[Mapping[str, int]],
    explain: int | None = None,
) -> JsonText[Prediction | None]:
    """Predict every issue of a recording of the real kernel.

    Parameters
    ----------
    recording : its name for messages; its events as CSV, in order of time; queue and scheduler as
        they were recorded, as JSON.
    scheduler : name of the one that predicts.
    tunables_json : ``{NAME: VALUE}``, units of sysfs; they replace the recorded ones.
    explain : number of an issue, from 0, whose decision is described.

    Returns
    -------
    str : ``{"method", "predicted", "predicted_nearly", "issues", "unexplained", "misses", ...}``;
        counts of requests, the first misses only. ``null`` if the scheduler is not the recorded
        one and cannot be forced.

    Raises
    ------
    iolab.errors.StudyError : not a recording, or a tunable that the scheduler does not have.
    """

def sim_replay(
    recording: tuple[str, str, str],
    scheduler: str,
    tunables_json: JsonText[Mapping[str, int]],
) -> JsonText[ReplayTwin]:
    """Run the processes of a recording again, in a closed loop against a simulated queue.

    Parameters
    ----------
    recording : as of `sim_predict`; its ``device_model`` must be of kind ``hdd``.
    scheduler : name of the one that is simulated.
    tunables_json : ``{NAME: VALUE}``, units of sysfs; they replace the recorded ones.

    Returns
    -------
    str : ``{"real": FIGURES, "simulated": FIGURES, "fit": {"phase" (turns), "overhead_ns"}}``;
        FIGURES is ``{"requests", "ascending", "merges", "joined", "processes": [{"process",
        "direction", "requests", "wait_ns", "share", "outstanding"}]}``, shares between 0 and 1.

    Raises
    ------
    iolab.errors.StudyError : not a recording, or of a device without a model.
    """

def sim_probe(stack_json: str, seed: int) -> JsonText[ProbeFindings]:
    """Measure what a stack has below its first queue, in virtual time, read caches off.

    Parameters
    ----------
    stack_json : from `sim_stack` or `sim_profile_stack`.
    seed : of the random places.

    Returns
    -------
    str : ``{"profile", "sizes": [{"pattern", "direction", "fixed_us", "rate_mb_s", "points"}],
        "depth": {"alone_us", "rate_max" (1/s), "knee", "points"}, "seek": {"rpm", "short", "long",
        "boundary" (cylinders), "mean_ms", "points"}}``; ``seek`` is null but of disks.

    Raises
    ------
    iolab.errors.StudyError : no such profile; names the nearest.
    """

def dialects() -> list[str]:
    """Names of the dialects: other programs whose command lines are understood."""

def dialect_parse(dialect: str, words: list[str]) -> JsonText[CommandPlan]:
    """A command line, without the program's name, as a plan (JSON).

    Raises
    ------
    iolab.errors.DialectError : the words cannot be understood; says where, with a caret.
    """

def dialect_render(dialect: str, plan: str, event: str) -> str:
    """Text that the dialect prints on standard output at an event (JSON) of a plan."""

def dialect_file(dialect: str, plan: str, event: str) -> bytes:
    """A file that the dialect writes for an event (JSON) of a plan."""

def dialect_help(dialect: str) -> str:
    """The text of the dialect's ``--help``."""

def dialect_reference(dialect: str) -> str:
    """The tables of the dialect's options, in Markdown."""

def trace_formats() -> JsonText[list[TraceFormat]]:
    """Formats of block traces.

    Returns
    -------
    str : JSON, ``[{"name", "about", "is_read", "is_written"}]``.
    """

def trace_show(
    inputs: _Traced,
    options_json: JsonText[TraceShowOptions],
    sink: Callable[[bytes], object],
) -> JsonText[TraceShownAnswer]:
    """Write a trace as the text of blkparse; the interpreter is free meanwhile.

    Parameters
    ----------
    inputs : files of the trace and the devices that are wanted of it (none: all). Of a file its
        name (``-``: standard input), and what gives at most so many of its bytes when called;
        None: the file is opened by its name. Of a device ``8:0``, ``sda`` or ``/dev/sda``. A third
        element is the part that is wanted: from one time on and before another, in ns since the
        first event; None is all of it.
    options_json : ``{"format", "kinds", "has_times", "is_quiet", "has_programs"}``.
    sink : is given the text piece by piece; control characters of names are gone.

    Returns
    -------
    str : JSON, ``{"format", "caveats": [{"text", "is_damage"}], "events"}``.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace, it has no event of a device, or an option cannot
        be understood.
    """

def trace_convert(
    inputs: _Traced,
    output: str,
    facts_json: JsonText[Mapping[str, str]],
    sink: Callable[[bytes], object],
) -> JsonText[TraceConvertedAnswer]:
    """Write a trace in another format; the interpreter is free meanwhile.

    Parameters
    ----------
    inputs : as for `trace_show`.
    output : ``iolab``, ``blktrace``, ``blkparse``, ``csv`` or ``iolog``.
    facts_json : texts by name, which our own format keeps.
    sink : is given the content piece by piece.

    Returns
    -------
    str : JSON, ``{"format", "caveats", "output", "written", "left_out"}``, counts of events.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace, or the format cannot hold it.
    """

def pattern_calls() -> JsonText[list[str]]:
    """Return the names of the system calls that `pattern_of` understands."""

def pattern_of(
    inputs: _Traced,
    question_json: JsonText[PatternQuestion],
) -> JsonText[PatternFoundAnswer]:
    """Find access patterns in a trace of system calls or blocks; the interpreter is free meanwhile.

    Parameters
    ----------
    inputs : as for `trace_show`.
    question_json : which files, and what beside the figures.

    Returns
    -------
    str : JSON, ``{"format", "caveats", "text", "report", "workload"}``.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace.
    """

def trace_column_kinds() -> str:
    """Columns of `trace_columns` with the names of their types in Arrow, as JSON.

    ``[{"name": "ts_ns", "kind": "uint64"}, ...]``
    """

def trace_columns(
    inputs: _Traced,
    sink: Callable[[int, list[tuple[bytes, bytes, bytes]]], object],
) -> str:
    """Hand a trace to `sink` in batches of columns in Arrow's memory layout.

    Parameters
    ----------
    inputs : as for `trace_show`.
    sink : is given the number of events, and per column validity, offsets and values; empty where
        the column has none.

    Returns
    -------
    str : JSON, ``{"format", "caveats", "written"}``.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace.
    """

def trace_output_of(name: str) -> str | None:
    """Format that the ending of a file's name stands for; None if it stands for none."""

def trace_stages(
    inputs: _Traced,
    by: str,
    style: str,
    span_ns: tuple[int, int] | None = None,
) -> JsonText[TraceMeasuredAnswer]:
    """Measure the stages of a trace; the interpreter is free meanwhile.

    Parameters
    ----------
    inputs : as for `trace_show`.
    by : ``device``, ``process``, ``direction`` or ``size``.
    style : of the text: ``stages``, ``summary``, ``btt`` or ``btt-short``; the last two count as
        btt does.
    span_ns : only events from the first time on and before the second, on the trace's clock.

    Returns
    -------
    str : JSON, ``{"format", "caveats", "text", "report"}``; times in ns, see
        ``docs/reference/trace-measures.md``.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace.
    """

def trace_perf_ring(formats: list[str], ring: bytes, span: tuple[int, int]) -> str:
    """Decode a ring of perf events between two counters; answers with counts as JSON."""

def trace_plot(
    inputs: _Traced,
    span_ns: tuple[int, int] | None = None,
) -> JsonText[TracePlotAnswer]:
    """Draw a trace as data: places over time, throughput, distances; in bounded memory.

    Parameters
    ----------
    inputs : as for `trace_show`.
    span_ns : beginning and end of what is drawn, on the clock of the trace; None is all of it.

    Returns
    -------
    str : JSON, ``{"format", "caveats", "devices", "span_ns", "step"}``.

    Raises
    ------
    iolab.errors.TraceError : no file is a trace.
    """

def trace_ring_pages(headers: tuple[str, str], formats: list[str], cpus: list[bytes]) -> str:
    """Decode raw pages of the kernel's ring buffer, as the recorder does.

    Parameters
    ----------
    headers : texts of the kernel's ``header_page`` and ``header_event``.
    formats : texts of the events' ``format`` files.
    cpus : pages of each CPU.

    Returns
    -------
    str : JSON, ``{"events", "damaged_pages", "pages_after_losses", "last_ns"}``.

    Raises
    ------
    iolab.errors.TraceError : a description cannot be understood.
    """

def trace_diff(
    first: _Traced,
    second: _Traced,
) -> JsonText[TracesCompared]:
    """Figures of two traces beside each other; inputs as for `trace_show`.

    Returns
    -------
    str : JSON, ``{"text", "pairs": [{"figure", "first", "second", "ratio"}], "traces": [{"format",
        "caveats"}]}``.

    Raises
    ------
    iolab.errors.TraceError : one of them is no trace.
    """

def extension_schema() -> str:
    """Types of what these functions take and give, for `make docs`.

    Returns
    -------
    str : ``{"types": {NAME: SCHEMA}}``, JSON schemas.
    """
