"""Rows of a stored study for judging and drawing.

The store (`iolab.store.db`) hands these frozen rows out; `iolab.stats` and `iolab.report` are pure
functions of one :class:`StudyData`. Nothing here knows SQLite, the agent or a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from iolab.frozen import frozen
from iolab.study.operations import Access
from iolab.study.operations import Kind as OperationKind
from iolab.study.testbeds import testbed_kind

if TYPE_CHECKING:
    from iolab.protocol import StageTimes, TracePlotAnswer

Kind = Literal["real", "simulated", "imported"]
TrialStatus = Literal["ok", "failed", "interrupted"]


@frozen
class Caveat:
    """A typed warning stored with a record.

    ``code`` is snake_case and stable (``page_cache``, ``generator_bound``, ``testbed_noise`` ...);
    ``message`` says what was seen, ``hint`` what to do about it.
    """

    code: str
    message: str
    hint: str = ""


@frozen
class StudyRow:
    """The question: what was planned, as it was typed and as it was understood."""

    study_id: str
    name: str
    kind: Kind
    created_at_unix_ns: int
    iolab_version: str
    seed: int
    margin: float
    """The smallest relative difference the user cares about (0.05 = 5 %)."""
    compared_factor: str
    """The factor whose levels the verdict ranks; all others span the cells. Empty if nothing is
    compared: a single run is a study without a factor."""
    baseline: str
    """Level of `compared_factor` that ratios are formed against; empty if nothing is compared."""
    factors: dict[str, list[str]]
    """Factor name to its levels, in the order given; record sizes as canonical text (``4k``)."""
    settings: dict[str, str]
    """Factors held at one level."""
    workloads: list[str]
    """Names in order; the first carries the headline verdict."""
    rounds_planned: int
    testbed: str
    """Canonical spec, e.g. ``loop:1g`` or ``dir:/tank/scratch``."""
    plan_digest: str
    spec_toml: str
    """The study as a file that reproduces it."""
    metric: str | None = None
    """Metric that carries the verdict; None is the first that a workload has."""
    metric_of: str | None = None
    """Stream or test that it is judged by; None is all of them."""
    command: tuple[str, ...] = ()
    """Dialect and words of the command line that it stands for; empty if it is none.

    Its treatments are rows of a table and run in their order, in every round.
    """

    is_in_slices: bool = False
    """True if levels alternated in slices; a round is then a balanced unit of them."""
    is_adjacent: bool = False
    """True if the trials of compared levels were planned next to each other."""

    @property
    def is_simulated(self) -> bool:
        """Tell whether its trials ran on models, in virtual time."""
        return self.kind == "simulated"

    @property
    def stores_nothing(self) -> bool:
        """Tell whether its operations completed at once: what was measured is iolab itself."""
        return testbed_kind(self.testbed.partition(":")[0]).stores_nothing

    @property
    def is_comparison(self) -> bool:
        """Tell whether there is more than one configuration."""
        return any(len(levels) > 1 for levels in self.factors.values())


@frozen
class TrialRow:
    """One planned execution and, once finished, what became of it."""

    trial_id: str
    ordinal: int
    """1-based place in the whole study."""
    round: int
    """1-based."""
    position: int
    """0-based place inside its round."""
    workload: str
    levels: dict[str, str]
    """Level of every factor for this trial (a workload without record size has no such key)."""
    status: TrialStatus | None
    """Status; None while it has not been run."""
    started_at_unix_ns: int | None = None
    elapsed_ns: int | None = None
    error: str | None = None
    caveats: tuple[Caveat, ...] = ()


@dataclass(slots=True)
class Measurement:
    """One value of one metric of one operation in one finished trial (``status == "ok"``).

    Nobody changes one. It is not frozen because there are millions in a large study, and a frozen
    one takes four times as long to make.
    """

    trial_id: str
    ordinal: int
    round: int
    position: int
    workload: str
    levels: dict[str, str]
    operation: str
    """Phase name (``write``, ``random-read``); in a mixed workload ``<phase>/<stream>``."""
    metric: str
    """A name in `iolab.stats.metrics.METRICS`, unit inside the name: ``throughput_bytes_per_s``,
    ``latency_ns_p50``, ``latency_ns_p99``, ``latency_ns_p999``, ``latency_ns_max``,
    ``response_ns_p99`` ..."""
    value: float
    is_direct: bool | None
    """Opened with O_DIRECT; buffered and direct values are never pooled. None = not known."""
    cache_share: float | None
    """Share of the bytes that never reached the device during the timed region; None = unknown."""
    caveats: tuple[Caveat, ...] = ()


@frozen
class SeriesRow:
    """Throughput over time of one phase of one trial, all workers of a tenant added up."""

    trial_id: str
    operation: str
    interval_ns: int
    ops: Sequence[int]
    bytes: Sequence[int]
    latency_ns_max: Sequence[int]


@frozen
class SlicesRow:
    """The slices of one operation of one trial of a study in slices, in order of time."""

    trial_id: str
    operation: str
    session: int
    """Of the agent; each has a layout of its own."""
    slice_ns: int
    """Length of a slice, as chosen."""
    chosen_by: str
    washout_ns: int
    switch_cost_ns: int
    begin_ns: Sequence[int]
    """From the beginning of the first unit of its session."""
    length_ns: Sequence[int]
    ops: Sequence[int]
    bytes: Sequence[int]
    longest_ns: Sequence[int]
    place: Sequence[int] = ()
    """Index of the device, of those made alike; empty: there is one, or all were on the first."""
    places: int = 1
    """Devices made alike."""
    images: int = 0
    """File systems made for its session, one for each that is compared; 0: one for all."""


@frozen
class CurveRow:
    """The latency distribution of one operation of one trial, at fixed quantiles."""

    trial_id: str
    operation: str
    clock: str
    """``latency`` (service time) or ``response`` (with the time in a queue of the generator)."""
    count: int
    """Operations behind it."""
    quantiles_ns: dict[float, float]
    """Quantile in (0, 1) to ns; only those beyond which an operation lies."""


@frozen
class TracedPhase:
    """Measures of one operation by the block trace of its trial.

    Of several devices, as the members of a software RAID, amounts and mean depths are sums.
    """

    trial_id: str
    operation: str
    file: str
    """The trace, below the results directory."""
    sha256: str
    span_ns: tuple[int, int]
    """Beginning and end on the clock of the trace."""
    stages: Mapping[str, StageTimes]
    """Stage (`docs/reference/trace-measures.md`) to its times."""
    read_bytes: int
    write_bytes: int
    requests: int
    """Reads, writes and discards that completed."""
    transfers: int
    """Reads and writes among them."""
    bios: int
    """Pieces that were asked for, before they were merged and split."""
    flushes: int
    sequential_share: float | None
    """Share of the requests that were issued where the one before ended."""
    in_flight_mean: float
    in_flight_max: int
    busy_share: float
    """Share of the time with a request at the driver, of the busiest device."""
    bytes_asked: int
    """Bytes that the application read and wrote."""


@frozen
class ChangeMark:
    """A knob that changed while a trial's workload ran; times from its beginning."""

    trial_id: str
    asked_ns: int
    began_ns: int
    done_ns: int
    knob: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Change: ``scheduler none -> bfq``."""
        return f"{self.knob} {self.before or '?'} -> {self.after or '?'}"


@frozen
class ByHand:
    """One treatment in the language of other programs (written by `iolab.export`)."""

    title: str
    """Name of the treatment and of its first trial."""
    fio: str
    """A job file."""
    iozone: str
    """Shell commands with comments."""


class StoredWorker(TypedDict):
    """Work of one worker of a phase."""

    worker: int
    ops: int
    bytes: int
    elapsed_ns: int


@frozen
class Nature:
    """Nature of an operation; None is not known, or several."""

    kind: OperationKind | None = None
    access: Access | None = None
    """The way to the data, as performed."""
    io_size_bytes: int | None = None
    """Bytes per operation."""


class PhaseDetail(TypedDict):
    """Stored values of a phase of a trial beside its metrics; None where it is not known."""

    trial_id: str
    operation: str
    nature: Nature
    harness_ns_per_op: float | None
    cpu_user_ns: int | None
    cpu_system_ns: int | None
    elapsed_ns: int | None
    device_read_bytes: int | None
    device_write_bytes: int | None
    device_flushed_write_bytes: int | None
    depth_reached_mean: float | None
    workers: list[StoredWorker]


@frozen
class StudyData:
    """Everything stored about one study, ready to be judged and drawn."""

    study: StudyRow
    trials: list[TrialRow]
    measurements: list[Measurement]
    series: list[SeriesRow] = field(default_factory=list[SeriesRow])
    curves: list[CurveRow] = field(default_factory=list[CurveRow])
    """Latency distributions of the trials of the first rounds (`iolab.store.curves`)."""
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """Facts that were equal in all trials."""
    varying_facts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Fact name to {trial_id: value}, for those that changed between trials."""
    caveats: tuple[Caveat, ...] = ()
    """Of the study as a whole (testbed, plan)."""
    knobs: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Trial id to its knobs as read back, for the finished trials of the first round."""
    file_systems: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Trial id to the parameters of its file system, for the same trials."""
    traced: list[TracedPhase] = field(default_factory=list[TracedPhase])
    """Measures of block traces, of the same trials as `curves`."""
    plots: Mapping[str, TracePlotAnswer] = field(default_factory=dict[str, "TracePlotAnswer"])
    """Trial to the picture of its trace; empty where nobody drew them."""
    figures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pictures of traces that were drawn when the study was archived, by the id of the figure."""
    marks: list[ChangeMark] = field(default_factory=list[ChangeMark])
    """Changes while workloads ran, by trial and time."""
    phase_details: list[PhaseDetail] = field(default_factory=list[PhaseDetail])
    """One per trial and phase."""
    looks: tuple[int, ...] = ()
    """Rounds that were complete when an earlier session ended at the end of a round: its results
    were seen, and whoever resumed the study knew them."""
    slices: list[SlicesRow] = field(default_factory=list[SlicesRow])
    """Of a study in slices: what every slice gave."""
    by_hand: tuple[ByHand, ...] = ()
    """The same treatments for fio and IOzone; empty where nobody translated them."""
    calibration: dict[str, Any] | None = None
    """Result of `iolab aa` for this testbed on this machine, if one is stored."""
    derived: dict[str, Any] = field(
        default_factory=dict[str, Any], init=False, compare=False, repr=False
    )
    """Values derived from the rows above and asked for again; a changed copy has none of it."""
