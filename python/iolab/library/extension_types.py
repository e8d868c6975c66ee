"""What the extension says of the simulator and of traces, until the border declares it."""

from __future__ import annotations

from typing import TypedDict


class Judgement(TypedDict):
    """One scenario, with the order that was expected and the one that came."""

    id: str
    scheduler: str
    title: str
    expected: str
    obtained: str
    is_ok: bool


class Prediction(TypedDict):
    """Issues of a recording that a model predicted; counts of requests."""

    predicted: int
    issues: int
    misses: list[tuple[int, int, int | None]]
    """The first misses: time in ns, recorded sector, chosen sector or None."""


class ProcessFigures(TypedDict):
    """One process of a recording, in one direction."""

    process: str
    direction: str
    requests: int
    wait_ns: float
    share: float
    """Of the bytes, between 0 and 1."""
    outstanding: float


class Figures(TypedDict):
    """What a queue did."""

    requests: int
    ascending: float
    """Share of requests whose sector is above the one before."""
    merges: int
    joined: int
    processes: list[ProcessFigures]


class ReplayFit(TypedDict):
    """What was measured of the device from the recording itself."""

    phase: float
    """Angle in turns at the first event."""
    overhead_ns: float


class ReplayTwin(TypedDict):
    """A recording, and its processes run again against a simulated queue."""

    real: Figures
    simulated: Figures
    fit: ReplayFit


class SizePoint(TypedDict):
    """Response to requests of one size."""

    kib: int
    median_us: float
    residual_us: float


class SizeSweep(TypedDict):
    """Time over size for one kind of access: a + b x size."""

    pattern: str
    direction: str
    fixed_us: float
    rate_mb_s: float | None
    """1/b; None where size costs nothing."""
    points: list[SizePoint]


class DepthPoint(TypedDict):
    """Rate and response at one depth."""

    depth: int
    rate: float
    response_us: float


class DepthSweep(TypedDict):
    """Rate over depth; rates per second."""

    alone_us: float
    rate_max: float
    knee: float
    points: list[DepthPoint]


class FittedLine(TypedDict):
    """A piece of the seek curve, in ms."""

    intercept: float
    slope: float


class SeekPoint(TypedDict):
    """Seek over one distance in cylinders."""

    distance: int
    seek_ms: float
    fitted_ms: float


class SeekSweep(TypedDict):
    """Time over distance: by the root of it up to `boundary` cylinders, then linear."""

    rpm: float
    short: FittedLine
    long: FittedLine
    boundary: int
    mean_ms: float
    points: list[SeekPoint]


class ProbeFindings(TypedDict):
    """What a stranger finds out about a simulated device."""

    profile: str
    sizes: list[SizeSweep]
    depth: DepthSweep
    seek: SeekSweep | None
    """None of what has no arm."""


class ProfileParameter(TypedDict):
    """One number of a profile, with its provenance."""

    value: object
    unit: str
    tag: str
    source: str


class Profile(TypedDict):
    """A simulated device."""

    name: str
    kind: str
    title: str
    notes: str
    parameters: dict[str, ProfileParameter]
    inner: str | None
    """Profile of the device inside, of wrappers only."""


class TunableInfo(TypedDict):
    """A tunable of a scheduler, as in sysfs."""

    name: str
    unit: str
    default: int
    min: int
    max: int
    about: str


class SchedulerBook(TypedDict):
    """A simulated scheduler."""

    name: str
    framework: str
    is_replayable: bool
    tunables: list[TunableInfo]


class TraceCaveat(TypedDict):
    """A remark of the reader of a trace."""

    text: str
    is_damage: bool


class OnlyReadAnswer(TypedDict):
    """What came of reading a trace."""

    format: str
    caveats: list[TraceCaveat]


class TraceConvertedAnswer(OnlyReadAnswer):
    """What came of converting one; counts of events."""

    output: str
    written: int
    left_out: int


class TraceMeasuredAnswer(OnlyReadAnswer):
    """Measures of a trace, as text and as `docs/reference/trace-measures.md` describes them."""

    text: str
    report: object


class TracesCompared(TypedDict):
    """Figures of two traces beside each other."""

    text: str
    pairs: list[object]
    traces: list[OnlyReadAnswer]


class TraceShowOptions(TypedDict):
    """How a trace is shown."""

    format: str | None
    """Fields of blkparse; None is its usual line."""
    kinds: str | None
    """Kinds of events, separated by commas; None is all."""
    has_times: bool
    is_quiet: bool
    has_programs: bool
