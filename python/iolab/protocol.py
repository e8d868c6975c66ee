"""Types that cross between Rust and Python: requests, answers and records.

Written by `make docs` from the schema of `crates/iolab-protocol`; edit that instead. A key that is
`NotRequired` is left out where it says nothing.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Method: TypeAlias = Literal[
    "hello",
    "doctor",
    "open_testbed",
    "run_trial",
    "proceed",
    "close_testbed",
    "record_trace",
    "watch_trace",
    "restore",
    "interrupt",
    "shutdown",
]


Access: TypeAlias = Literal["plain", "direct", "append", "mapped", "stdio"]
"""Way from a handle to its file."""


AccessClass: TypeAlias = Literal[
    "sequential",
    "interleaved",
    "backward",
    "same",
    "strided",
    "near",
    "random",
]
"""Name of a access class."""


AccessPattern: TypeAlias = Literal[
    "sequential",
    "interleaved",
    "backward",
    "strided",
    "same-place",
    "near",
    "random",
    "mixed",
]
"""Name of a access pattern."""


class AccessPauses(TypedDict):
    """Pauses of a file, of a millisecond at least."""

    count: int
    least_ns: int
    longest_ns: int
    total_ns: int


ActionKind: TypeAlias = Literal[
    "write_knob",
    "mkfs",
    "mount",
    "umount",
    "create_file",
    "remove_file",
    "add_loop",
    "attach_loop",
    "detach_loop",
    "remove_loop",
    "drop_caches",
    "create_directory",
    "remove_directory",
    "create_cgroup",
    "remove_cgroup",
    "create_trace_instance",
    "remove_trace_instance",
    "claim_device",
    "write_device",
    "write_marker",
    "exec",
    "set",
    "simulate",
]
"""Kinds of actions."""


Action = TypedDict(
    "Action",
    {
        "class": str,
        "detail": str,
        "kind": ActionKind,
        "target": str,
    },
)
"""One thing that was done, or would be in a dry run."""


Advice: TypeAlias = Literal["normal", "random", "sequential", "dontneed", "willneed"]
"""Name of a advice."""


class AlikeLevels(TypedDict):
    """A factor whose levels are all the same on a simulated stack."""

    factor: str
    hint: str
    is_without_files: bool
    levels: list[str]
    reason: str


class Allocations(TypedDict):
    """Numbers of calls of `fallocate(2)`."""

    clearing: int
    extending: int
    keeping: int


class Weighted(TypedDict):
    """A row of a table."""

    to: NotRequired[int | None]
    value: int
    weight: float


SpreadUniform = TypedDict(
    "SpreadUniform",
    {
        "by": Literal["uniform"],
        "from": int,
        "step": NotRequired[int],
        "to": int,
    },
)
"""Each multiple of `step` from `from` to `to` is as likely."""


class SpreadGamma(TypedDict):
    """Gamma, never above `most`."""

    by: Literal["gamma"]
    least: NotRequired[int]
    mean: float
    most: int
    round: NotRequired[int]
    shape: float


class SpreadNormal(TypedDict):
    """Normal, cut at both ends."""

    by: Literal["normal"]
    deviation: float
    least: NotRequired[int]
    mean: float
    most: int
    round: NotRequired[int]


class SpreadExponential(TypedDict):
    """Exponential, never above `most`."""

    by: Literal["exponential"]
    mean: float
    most: int


SpreadZipf = TypedDict(
    "SpreadZipf",
    {
        "by": Literal["zipf"],
        "from": int,
        "theta": float,
        "to": int,
    },
)
"""Zipf over `from ..= to`: the smallest value is the most likely."""


class SpreadLognormal(TypedDict):
    """Lognormal, never above `most`."""

    by: Literal["lognormal"]
    most: int
    mu: float
    sigma: float


class SpreadWeibull(TypedDict):
    """Weibull, never above `most`."""

    by: Literal["weibull"]
    most: int
    scale: float
    shape: float


SpreadTriangular = TypedDict(
    "SpreadTriangular",
    {
        "by": Literal["triangular"],
        "from": int,
        "mode": int,
        "to": int,
    },
)
"""Triangular: the density rises from `from` to `mode` and falls to `to`."""


class SpreadBelow(TypedDict):
    """Each number below one that is drawn is as likely."""

    by: Literal["below"]
    of: "Amount"


class SpreadClipped(TypedDict):
    """Drawn otherwise, cut at both ends and rounded."""

    by: Literal["clipped"]
    least: NotRequired[int]
    most: int
    of: "Amount"
    round: NotRequired[int]


class SpreadTable(TypedDict):
    """One row of a table, by weight."""

    by: Literal["table"]
    rows: list[Weighted]


Spread: TypeAlias = (
    SpreadUniform
    | SpreadGamma
    | SpreadNormal
    | SpreadExponential
    | SpreadZipf
    | SpreadLognormal
    | SpreadWeibull
    | SpreadTriangular
    | SpreadBelow
    | SpreadClipped
    | SpreadTable
)
"""Distribution from which a number is drawn."""


Amount: TypeAlias = int | Spread
"""A whole number, or the distribution that it is drawn from."""


Cache: TypeAlias = Literal["cold", "warm", "as_is"]
"""Content of the page cache before a reading phase."""


class KnobChange(TypedDict):
    """Knobs that change while the workload runs."""

    at_ns: int
    knobs: dict[str, str]


class IoGroup(TypedDict):
    """Weight and limits of the workers of some tenants."""

    max_read_bytes_per_s: NotRequired[int | None]
    max_read_ops_per_s: NotRequired[int | None]
    max_write_bytes_per_s: NotRequired[int | None]
    max_write_ops_per_s: NotRequired[int | None]
    tenants: list[str]
    weight: NotRequired[int | None]


class Stack(TypedDict):
    """File system and device arrangement of a trial."""

    fs: str
    has_external_journal: bool
    mkfs_options: list[str]
    mount_options: list[str]


class BytePattern(TypedDict):
    """Bytes that are repeated."""

    bytes: list[int]
    length: int


Bytes: TypeAlias = int
"""A number of bytes: a size, a length or an offset."""


Seed: TypeAlias = int
"""The root of all randomness of a study; streams for its parts are split off by `Seed::stream`."""


class Blend(TypedDict):
    """Shares of each granule of a file that storage may find equal or empty, in percent of it."""

    across_percent: int
    chunk_bytes: Bytes
    chunk_zero_percent: int
    everywhere_percent: int
    granule_bytes: Bytes
    seed: Seed
    skew: int
    within_percent: int
    zero_percent: int


class ContentPattern(TypedDict):
    """The same few bytes again and again, from the beginning of each write on."""

    pattern: BytePattern


class ContentBlend(TypedDict):
    """Data of which a share can be de-duplicated or compressed; who opens lanes makes them, and
    then asks for `Content::Prepared`.
    """

    blend: Blend


Content: TypeAlias = ContentPattern | ContentBlend | Literal["incompressible", "zero", "prepared"]
"""Content of buffers."""


Fill: TypeAlias = Literal["data", "allocated", "sparse"]
"""Content of files that are there at the beginning."""


Reuse: TypeAlias = Literal["continue", "never", "found", "kept", "untouched"]
"""Treatment of files that are there already."""


class Branching(TypedDict):
    """Tree that grows depth first: each directory draws its width, and a depth at which it would
    be a leaf that holds files. Source: Filebench 1.5-alpha3, `fileset.c`.
    """

    depth: NotRequired[Amount | None]
    width: NotRequired[Amount | None]


class Tree(TypedDict):
    """Directories and names of a set."""

    branching: NotRequired[Branching | None]
    depth: NotRequired[int | None]
    has_leaf_directories: NotRequired[bool]
    leaf_directories: NotRequired[int]
    names: NotRequired[list[str]]
    width: NotRequired[int | None]
    width_shape: NotRequired[float]


class FileSet(TypedDict):
    """Files that programs work on, below a directory of their own."""

    content: NotRequired[Content | None]
    existing_percent: NotRequired[float]
    file_bytes: Amount
    files: int
    fill: NotRequired[Fill]
    is_flat: NotRequired[bool]
    makers: NotRequired[int]
    name: str
    place: NotRequired[str | None]
    reuse: NotRequired[Reuse]
    tree: NotRequired[Tree]


Ns: TypeAlias = int
"""Nanoseconds on a target's own clock, or a duration on it."""


class KeySpace(TypedDict):
    """Keys that programs work on, and their values."""

    is_hashed: NotRequired[bool]
    is_loaded: NotRequired[bool]
    name: str
    records: int
    value_bytes: Amount


class DirectionRead(TypedDict):
    """Only reads."""

    kind: Literal["read"]


class DirectionWrite(TypedDict):
    """Only writes."""

    kind: Literal["write"]


class DirectionMixed(TypedDict):
    """Each op reads with this probability. Reads and writes in order (sequential, reverse,
    stride) have a position each; in a random order without repetition a record is read or
    written.
    """

    kind: Literal["mixed"]
    read_share: float


class DirectionReread(TypedDict):
    """Only reads: the records that a tenant of the same name, pattern and limit writes if it is
    `mixed` with this share, in the same order.
    """

    kind: Literal["reread"]
    read_share: float


class DirectionUpdate(TypedDict):
    """Each op reads its record and with this probability writes it back: one op, two calls."""

    kind: Literal["update"]
    write_share: float


Direction: TypeAlias = (
    DirectionRead | DirectionWrite | DirectionMixed | DirectionReread | DirectionUpdate
)
"""Reading, writing or both."""


class SourceCLibrary(TypedDict):
    """rand(3) after srand(3)."""

    kind: Literal["c_library"]
    seed: int


class SourceGiven(TypedDict):
    """Values, repeated in order."""

    kind: Literal["given"]
    values: list[int]


Source: TypeAlias = SourceCLibrary | SourceGiven
"""Source of numbers."""


class Draws(TypedDict):
    """The numbers of a run: first a ticket for each seek, then what the sets of files need."""

    source: Source
    tickets: int


Durability: TypeAlias = Literal["none", "sync", "dsync"]
"""Promise of a write that returned."""


FileAction: TypeAlias = Literal["create", "read", "remove", "extend"]
"""Action on the files."""


LinkKind: TypeAlias = Literal["none", "hard", "symbolic"]
"""Links instead of files."""


FileOrder: TypeAlias = Literal["sequential", "random"]
"""In which order."""


class FileSetWork(TypedDict):
    """Work on a set of files."""

    action: FileAction
    directories: int
    files: int
    is_flushed: bool
    is_sparse: bool
    link: LinkKind
    order: FileOrder
    size_max_bytes: Bytes
    size_min_bytes: Bytes


FlagName: TypeAlias = Literal["hipri", "dsync", "sync", "nowait", "dontcache"]
"""Name of a transfer flag."""


TransferFlags: TypeAlias = list[FlagName]
"""Per-transfer flags, the RWF family of preadv2(2) and pwritev2(2). In descriptions of workloads
they are a list of `FlagName`s.
"""


Flush: TypeAlias = Literal["fsync", "fdatasync", "sync_file_range", "msync", "msync_async"]
"""Way in which data are flushed between operations."""


class FsyncPolicyNone(TypedDict):
    """Never."""

    kind: Literal["none"]


class FsyncPolicyAfter(TypedDict):
    """Once, after the timed region."""

    kind: Literal["after"]


class FsyncPolicyTimed(TypedDict):
    """Once, inside the timed region."""

    kind: Literal["timed"]


class FsyncPolicyBetween(TypedDict):
    """Inside the timed region, after every so many writes of a worker, but not after its last
    op.
    """

    is_ended: bool
    is_repeated: NotRequired[bool]
    kind: Literal["between"]
    ops: int
    pass_ops: NotRequired[int]


class FsyncPolicyEvery(TypedDict):
    """Inside the timed region, after every so many writes of a worker."""

    kind: Literal["every"]
    ops: int


FsyncPolicy: TypeAlias = (
    FsyncPolicyNone | FsyncPolicyAfter | FsyncPolicyTimed | FsyncPolicyBetween | FsyncPolicyEvery
)
"""Times at which data are flushed."""


KvAction: TypeAlias = Literal["load", "run"]
"""Name of a action."""


class KvLengthConstant(TypedDict):
    """Always the same."""

    by: Literal["constant"]
    length: int


KvLengthUniform = TypedDict(
    "KvLengthUniform",
    {
        "by": Literal["uniform"],
        "from": int,
        "to": int,
    },
)
"""Each as likely as any other."""


KvLengthZipfian = TypedDict(
    "KvLengthZipfian",
    {
        "by": Literal["zipfian"],
        "from": int,
        "to": int,
    },
)
"""Short ones are likely."""


class KvLengthHistogram(TypedDict):
    """As often as counted."""

    by: Literal["histogram"]
    counts: list[int]
    part_bytes: int


KvLength: TypeAlias = KvLengthConstant | KvLengthUniform | KvLengthZipfian | KvLengthHistogram
"""A length, or a number of records, and how it is drawn."""


KvInterval: TypeAlias = Literal["op", "intended", "both"]
"""Name of a measurement interval."""


class KvMeasured(TypedDict):
    """Extent of what is kept of every operation beside its histogram."""

    interval: KvInterval
    label: str
    ms_parts: int
    status_s: float
    window_ms: int


class KvMix(TypedDict):
    """Weights of the operations; they need not add up to 1."""

    insert: float
    read: float
    read_modify_write: float
    scan: float
    update: float


class KvOrderUniform(TypedDict):
    """Each as likely as any other."""

    by: Literal["uniform"]


class KvOrderZipfian(TypedDict):
    """Popular ones, scattered over all keys."""

    by: Literal["zipfian"]


class KvOrderLatest(TypedDict):
    """The newest are the most popular."""

    by: Literal["latest"]


class KvOrderHotspot(TypedDict):
    """A part of the keys gets a share of the operations."""

    by: Literal["hotspot"]
    data_fraction: float
    ops_fraction: float


class KvOrderExponential(TypedDict):
    """The newer, the likelier, exponentially."""

    by: Literal["exponential"]
    fraction: float
    percentile: float


class KvOrderSequential(TypedDict):
    """One after the other, all clients together."""

    by: Literal["sequential"]


KvOrder: TypeAlias = (
    KvOrderUniform
    | KvOrderZipfian
    | KvOrderLatest
    | KvOrderHotspot
    | KvOrderExponential
    | KvOrderSequential
)
"""Choice of keys."""


KvDurability: TypeAlias = Literal["none", "wal", "sync"]
"""Name of a durability."""


class KvOption(TypedDict):
    """An option of a store."""

    name: str
    part: str
    value: str


class KvOptions(TypedDict):
    """Settings with which a store is opened."""

    durability: KvDurability
    has_statistics: bool
    options: NotRequired[list[KvOption]]
    table: str


class KvWork(TypedDict):
    """Clients of a store."""

    action: KvAction
    field_count: int
    field_length: KvLength
    field_prefix: str
    goes_on_after_errors: bool
    insert_count: int
    insert_retries: int
    insert_start: int
    is_hashed: bool
    is_spinning: bool
    is_verified: bool
    loads_new_store: bool
    measured: KvMeasured
    mix: KvMix
    operation_count: int
    order: KvOrder
    reads_all_fields: bool
    record_count: int
    retry_interval_s: float
    scan_length: KvLength
    store: KvOptions
    target_per_s: float
    time_limit_s: int
    writes_all_fields: bool
    zero_padding: int


class LimitOnce(TypedDict):
    """After as many ops as the file has records."""

    kind: Literal["once"]


class LimitOps(TypedDict):
    """After this many ops."""

    kind: Literal["ops"]
    ops: int
    within_ns: NotRequired[Ns | None]


class LimitTime(TypedDict):
    """After this long."""

    duration_ns: Ns
    kind: Literal["time"]


Limit: TypeAlias = LimitOnce | LimitOps | LimitTime
"""Condition that ends a worker."""


LockPolicy: TypeAlias = Literal["none", "whole_file", "record", "exclusive", "read_write"]
"""Part of a file that is locked with fcntl(2) while a worker operates."""


class Burst(TypedDict):
    """Pauses after so much work, or after so much time; whichever comes first."""

    burning_ns: NotRequired[Ns]
    bytes: NotRequired[Bytes]
    delays_schedule: NotRequired[bool]
    lasting_ns: NotRequired[Ns]
    ops: NotRequired[int]
    pause_ns: Ns


class Cpus(TypedDict):
    """CPUs that workers run on."""

    is_split: NotRequired[bool]
    numbers: NotRequired[list[int]]


Preallocation: TypeAlias = Literal["extended", "reserved", "length"]
"""Way in which room is made in a new file before anything is written."""


class RangeSync(TypedDict):
    """Parts of a `sync_file_range(2)`; usually all of them."""

    waits_after: bool
    waits_before: bool
    writes: bool


class ReadingBack(TypedDict):
    """Reading back what a writer has written, oldest first. In its end the rest is read, unless
    its time was over.
    """

    after_ops: int
    batch_ops: int


ReplayOp: TypeAlias = list[int]
"""One op of a replay."""


class DepthSearch(TypedDict):
    """Searches for the largest number of ops in flight at which latencies stay below a target.
    It begins with one and doubles as long as a window keeps the target; after the first window
    that does not, it halves the distance to the largest number that did. When that is found,
    counting begins anew and the worker ends after one more window.
    """

    depth_max: int
    goes_on: bool
    percent: float
    target_ns: Ns
    window_ns: Ns


class LeastRate(TypedDict):
    """Lowest rates: a worker fails when it was slower in a cycle, after two seconds of settling."""

    bytes_per_s: list[int]
    cycle_ns: Ns
    ops_per_s: list[int]


RateOf: TypeAlias = Literal["ops", "bytes"]
"""Rate that is looked at."""


class SteadyRule(TypedDict):
    """Ends a worker when its rate is steady: one sample per second, judged over the last ones."""

    after_ns: Ns
    is_percent: bool
    is_slope: bool
    limit: float
    of: RateOf
    samples: int


class Tolerance(TypedDict):
    """Failures that do not end a worker: they are counted, and the op is not."""

    ends_at_mismatch: NotRequired[bool]
    errnos_of_reads: list[int]
    errnos_of_writes: list[int]
    mismatches: bool
    reads: bool
    writes: bool


class TenantRules(TypedDict):
    """All rules of a tenant."""

    depth_search: NotRequired[DepthSearch | None]
    least: NotRequired[LeastRate | None]
    longest_ns: NotRequired[list[Ns | None] | None]
    steady: NotRequired[SteadyRule | None]
    tolerance: NotRequired[Tolerance | None]


class VerifiedBlocks(TypedDict):
    """Blocks in which a tenant's files are verified."""

    are_kept: NotRequired[bool]
    bytes: NotRequired[Bytes | None]
    header_at_bytes: NotRequired[Bytes]
    may_be_foreign: NotRequired[bool]


WriteLife: TypeAlias = Literal["unsaid", "none", "short", "medium", "long", "extreme"]
"""Lifetime that the data of a file are said to have (`F_SET_RW_HINT`, fcntl(2)): devices may put
together what dies together.
"""


class Manner(TypedDict):
    """Manner in which the workers of a tenant work, beyond pattern, direction and rate."""

    advice: NotRequired[Advice | None]
    begin_step_ns: NotRequired[Ns]
    buffers: NotRequired[int]
    burst: NotRequired[Burst | None]
    call_bytes: NotRequired[int]
    content: NotRequired[Content | None]
    cpus: NotRequired[Cpus]
    drops_cache_every: NotRequired[int]
    drops_cache_first: NotRequired[bool]
    engine: NotRequired[str | None]
    expects_written: NotRequired[bool]
    is_unlinked: NotRequired[bool]
    jumps_every: NotRequired[int]
    kernel_thread_every: NotRequired[int]
    nice: NotRequired[int]
    op_log: NotRequired[str | None]
    op_log_window_ns: NotRequired[Ns]
    preallocation: NotRequired[Preallocation]
    range_sync: NotRequired[RangeSync]
    read_back: NotRequired[ReadingBack | None]
    refill_at: NotRequired[int | None]
    replay: NotRequired[list[ReplayOp]]
    rules: NotRequired[TenantRules]
    submission_group: NotRequired[int]
    submitter_cpu: NotRequired[int | None]
    verified: NotRequired[VerifiedBlocks]
    warm_up_ns: NotRequired[Ns]
    write_life: NotRequired[WriteLife]


Opening: TypeAlias = Literal["create", "new", "existing", "laid_out", "keep"]
"""Preparation of the file before the timed region."""


class PatternSequential(TypedDict):
    """0, 1, 2, ..."""

    kind: Literal["sequential"]


class PatternReverse(TypedDict):
    """The last one first."""

    kind: Literal["reverse"]


class PatternStride(TypedDict):
    """`IOzone`'s stride rule."""

    kind: Literal["stride"]
    stride: int


class PatternPermutation(TypedDict):
    """`IOzone`'s random order: each record once, the same in every run."""

    kind: Literal["permutation"]


class PatternShuffled(TypedDict):
    """A random order: each record once before any comes again, then in the same order; it
    follows from the workload's seed, and workers differ.
    """

    kind: Literal["shuffled"]


class PatternUniform(TypedDict):
    """Independent uniform draws from the workload's seed."""

    kind: Literal["uniform"]


class PatternSame(TypedDict):
    """Record 0 over and over."""

    kind: Literal["same"]


Pattern: TypeAlias = (
    PatternSequential
    | PatternReverse
    | PatternStride
    | PatternPermutation
    | PatternShuffled
    | PatternUniform
    | PatternSame
)
"""Order in which records are touched."""


PriorityClass: TypeAlias = Literal["rt", "none", "be", "idle"]
"""I/O priority class, `ioprio_set(2)`. The order is the urgency."""


Priority = TypedDict(
    "Priority",
    {
        "class": PriorityClass,
        "level": int,
    },
)
"""I/O priority: class and level."""


class Zones(TypedDict):
    """Zones of a region: so many bytes are moved in one, then the next is gone to."""

    bytes: Bytes
    moved_bytes: Bytes
    skip_bytes: Bytes


class Course(TypedDict):
    """Order of the places of the transfers of a step."""

    drops_cache: NotRequired[bool]
    flushes: NotRequired[bool]
    is_endless: NotRequired[bool]
    is_repeating: NotRequired[bool]
    ops_per_place: NotRequired[int]
    picked_percent: NotRequired[int]
    renews: NotRequired[bool]
    skip_bytes: NotRequired[int]
    zones: NotRequired[Zones | None]


Cursor: TypeAlias = Literal["worker", "shared"]
"""Sharing of the order of places."""


class Zone(TypedDict):
    """A part of a range."""

    data_percent: float
    ops_percent: float


class PickSequential(TypedDict):
    """0, 1, 2, ..., and from the beginning again."""

    by: Literal["sequential"]


class PickReverse(TypedDict):
    """The last one first."""

    by: Literal["reverse"]


class PickStrided(TypedDict):
    """Number of units that are skipped between two; at the end it goes on at the beginning."""

    by: Literal["strided"]
    skip: int


class PickUniform(TypedDict):
    """Each is as likely as any other."""

    by: Literal["uniform"]


class PickPermutation(TypedDict):
    """Each once before any comes again, in an order like chance."""

    by: Literal["permutation"]


class PickZipf(TypedDict):
    """Zipf; which ones are likely is scattered over the range."""

    by: Literal["zipf"]
    center: NotRequired[float | None]
    theta: float


class PickPareto(TypedDict):
    """A share `h` of the things gets `1 - h` of the draws (fio's pareto)."""

    by: Literal["pareto"]
    center: NotRequired[float | None]
    h: float


class PickBell(TypedDict):
    """The mean of twelve even draws, moved by another one (fio's normal), scattered."""

    by: Literal["bell"]
    center: NotRequired[float | None]
    spread_percent: float


class PickNormal(TypedDict):
    """Normal around the middle, in percent of the range."""

    by: Literal["normal"]
    deviation_percent: float


class PickHot(TypedDict):
    """The first `data_percent` of the range get `ops_percent` of the draws."""

    by: Literal["hot"]
    data_percent: float
    ops_percent: float


class PickZones(TypedDict):
    """Several parts, one behind the other, each with its share of the draws."""

    by: Literal["zones"]
    zones: list[Zone]


class PickDrawn(TypedDict):
    """A number that is drawn; one beyond the range counts from its beginning again."""

    by: Literal["drawn"]
    number: Amount


class PickSame(TypedDict):
    """Always the first one."""

    by: Literal["same"]


class PickList(TypedDict):
    """Values, one after the other."""

    by: Literal["list"]
    values: list[int]


class PickLatest(TypedDict):
    """Zipf over the most recent ones: the last that was acknowledged is the most likely (keys)."""

    by: Literal["latest"]
    theta: float


class PickExponential(TypedDict):
    """Exponential over the most recent ones: `percent` of the draws lie in the last `share` of
    what was there at the beginning (keys).
    """

    by: Literal["exponential"]
    percent: float
    share: float


Pick: TypeAlias = (
    PickSequential
    | PickReverse
    | PickStrided
    | PickUniform
    | PickPermutation
    | PickZipf
    | PickPareto
    | PickBell
    | PickNormal
    | PickHot
    | PickZones
    | PickDrawn
    | PickSame
    | PickList
    | PickLatest
    | PickExponential
)
"""An order or a distribution over `0 .. n`. Text alone stands for one without parameters:
`'uniform'` is `{ by = 'uniform' }`.
"""


class Place(TypedDict):
    """Begin of a transfer in a file: a place that is picked among those of a region, or one
    relative to an earlier step's.
    """

    course: NotRequired[Course | None]
    cursor: NotRequired[Cursor]
    from_bytes: NotRequired[Bytes]
    of: NotRequired[str | None]
    pick: NotRequired[Pick | None]
    plus_bytes: NotRequired[int]
    unit_bytes: NotRequired[Bytes | None]
    within_bytes: NotRequired[Bytes | None]
    worker_step_bytes: NotRequired[Bytes]


Deed: TypeAlias = Literal[
    "read",
    "write",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "msync",
    "msync_async",
    "flush_stream",
    "sync_directory",
    "sync_all",
    "open",
    "close",
    "create",
    "unlink",
    "stat",
    "rename",
    "link",
    "symbolic_link",
    "list_directory",
    "make_directory",
    "remove_directory",
    "truncate",
    "allocate",
    "punch",
    "zero",
    "discard",
    "copy",
    "get",
    "put",
    "modify",
    "delete",
    "scan",
    "think",
    "burn",
    "post",
    "wait",
    "barrier",
    "await",
    "limit",
    "finish",
    "sequence",
    "choose",
    "repeat",
    "composite",
]
"""Name of a step."""


EventsFor: TypeAlias = Literal["step", "operation", "transfer", "mebibyte"]
"""Thing that an event is taken for, since the step took the last ones."""


class Events(TypedDict):
    """Events that a step takes from a source."""

    each: EventsFor
    of: NotRequired[str | None]
    per_s: float
    source: str


class Every(TypedDict):
    """'Every so many operations of a kind.'"""

    is_repeated: NotRequired[bool]
    of: str
    ops: int


FileBy: TypeAlias = Literal[
    "existing",
    "absent",
    "next",
    "next_absent",
    "own",
    "pick",
    "served",
    "slot",
    "same",
    "local",
]
"""Name of a choice of a file."""


WhenNone: TypeAlias = Literal["fail", "skip", "end", "wait"]
"""Reaction where there is nothing to choose."""


class FileChoice(TypedDict):
    """Choice of a file."""

    by: FileBy
    is_own: NotRequired[bool]
    local: NotRequired[str | None]
    pick: NotRequired[Pick | None]
    set: NotRequired[str | None]
    slot: NotRequired[str | None]
    stay: NotRequired[int]
    step: NotRequired[str | None]
    when_none: NotRequired[WhenNone]


KeyBy: TypeAlias = Literal["pick", "new", "same", "local"]
"""Name of a choice of a key."""


class KeyChoice(TypedDict):
    """Choice of a key."""

    by: KeyBy
    local: NotRequired[str | None]
    pick: NotRequired[Pick | None]
    space: NotRequired[str | None]
    step: NotRequired[str | None]


class Local(TypedDict):
    """A variable of a composite: chosen when it begins, the same until it ends."""

    file: NotRequired[FileChoice | None]
    key: NotRequired[KeyChoice | None]
    name: str


DataPath: TypeAlias = Literal["cached", "direct", "mapped", "stdio"]
"""Path to the data of a file."""


Positioned: TypeAlias = Literal["at", "current", "append"]
"""Begin of a transfer."""


class Until(TypedDict):
    """Condition that ends a worker; whichever comes first."""

    bytes: NotRequired[int | None]
    fails: NotRequired[bool]
    of: NotRequired[str | None]
    ops: NotRequired[int | None]


Verify: TypeAlias = Literal["none", "headers", "full"]
"""Comparison of what is read with what was written."""


class Node(TypedDict):
    """A node. What it does decides which fields mean something; a field that means nothing is
    refused.
    """

    advice: NotRequired[Advice | None]
    at: NotRequired[Place | None]
    barrier: NotRequired[str | None]
    count: NotRequired[Amount | None]
    does: Deed
    durability: NotRequired[Durability]
    duration_ns: NotRequired[Amount | None]
    events: NotRequired[Events | None]
    every: NotRequired[Every | None]
    file: NotRequired[FileChoice | None]
    flags: NotRequired[TransferFlags]
    from_slot: NotRequired[str | None]
    high_water: NotRequired[int | None]
    id: NotRequired[str | None]
    is_broadcast: NotRequired[bool]
    is_counted: NotRequired[bool]
    is_read_only: NotRequired[bool]
    is_submitted_only: NotRequired[bool]
    is_truncating: NotRequired[bool]
    is_whole: NotRequired[bool]
    is_write_only: NotRequired[bool]
    keeps_length: NotRequired[bool]
    key: NotRequired[KeyChoice | None]
    locals: NotRequired[list[Local]]
    path: NotRequired[DataPath | None]
    position: NotRequired[Positioned | None]
    range_sync: NotRequired[RangeSync]
    rotates: NotRequired[int]
    semaphore: NotRequired[str | None]
    size_bytes: NotRequired[Amount | None]
    skips_closed: NotRequired[bool]
    slot: NotRequired[str | None]
    steps: NotRequired[list["Node"]]
    times: NotRequired[Amount | None]
    to_file: NotRequired[FileChoice | None]
    under_way: NotRequired[int]
    under_way_percent: NotRequired[int | None]
    until: NotRequired[Until | None]
    vectors: NotRequired[int]
    verify: NotRequired[Verify | None]
    weight: NotRequired[float]
    write_life: NotRequired[WriteLife]


class Flow(TypedDict):
    """A proportion between tenants."""

    name: str
    weight: int


class CountOf(TypedDict):
    """Number of operations of one id."""

    id: str
    ops: int


class Limits(TypedDict):
    """Condition that ends a worker. Each counts for itself; whichever comes first decides."""

    count: NotRequired[CountOf | None]
    ops: NotRequired[int | None]
    passes: NotRequired[int | None]
    time_ns: NotRequired[Ns | None]
    total_bytes: NotRequired[Bytes | None]


class PaceClosed(TypedDict):
    """Begin when the one before has ended."""

    kind: Literal["closed"]


class PaceRate(TypedDict):
    """At fixed intervals; who is late begins at once."""

    kind: Literal["rate"]
    passes_per_s: float


class PaceBytes(TypedDict):
    """As soon as a rate allows for the bytes of those before; who is late begins at once."""

    bytes_per_s: float
    kind: Literal["bytes"]


class PacePoisson(TypedDict):
    """At instants of a Poisson process; who is late begins at once."""

    kind: Literal["poisson"]
    passes_per_s: float


class PaceDirections(TypedDict):
    """Reads and writes, each at a rate of its own; who is late begins at once. The one that is
    drawn waits, unless the other one is due.
    """

    is_in_bytes: NotRequired[bool]
    kind: Literal["directions"]
    reads_per_s: float
    writes_per_s: float


class PaceBursts(TypedDict):
    """Number of passes one after the other, then a pause."""

    kind: Literal["bursts"]
    passes: int
    pause_ns: Ns


class PaceRecorded(TypedDict):
    """Operations of a recorded stream begin at their recorded times, or later."""

    kind: Literal["recorded"]
    speed: NotRequired[float]


Pace: TypeAlias = (
    PaceClosed | PaceRate | PaceBytes | PacePoisson | PaceDirections | PaceBursts | PaceRecorded
)
"""Times at which passes begin."""


class RecordedIdentity(TypedDict):
    """Size and digest of the file of a recorded stream."""

    digest: str
    file_bytes: Bytes


class RecordedContent(TypedDict):
    """Contents of a recorded stream in numbers."""

    does: list[Deed]
    duration_ns: Ns
    end_bytes: Bytes
    files: int
    grain_bytes: Bytes
    identity: RecordedIdentity
    least_bytes: Bytes
    most_bytes: Bytes
    ops: int
    read_bytes: Bytes
    written_bytes: Bytes


RecordedFormat: TypeAlias = Literal["iolab", "iolog", "blktrace"]
"""Name of a format of a recorded stream."""


class Recorded(TypedDict):
    """A recorded stream that a worker does again."""

    at_divisor: NotRequired[int]
    at_unit_bytes: NotRequired[int]
    content: NotRequired[RecordedContent | None]
    file: str
    format: RecordedFormat
    is_one_file: NotRequired[bool]
    path: NotRequired[DataPath | None]
    set: str
    skip: NotRequired[list[Deed]]


class Program(TypedDict):
    """Work of each worker of a tenant."""

    after: NotRequired[list[Node]]
    before: NotRequired[list[Node]]
    begins_after: NotRequired[str | None]
    begins_at: NotRequired[str | None]
    draws_of: NotRequired[str | None]
    flow: NotRequired[Flow | None]
    limit: NotRequired[Limits]
    pace: NotRequired[Pace]
    recorded: NotRequired[Recorded | None]
    steps: list[Node]


class Region(TypedDict):
    """A part of a file."""

    bytes: Bytes
    from_bytes: Bytes
    step_bytes: NotRequired[Bytes]


class Tenant(TypedDict):
    """Equal workers."""

    access: Access
    begins_ns: NotRequired[Ns]
    depth: int
    direction: Direction
    draws: NotRequired[Draws | None]
    durability: Durability
    file: str
    file_bytes: Bytes
    file_first: NotRequired[int]
    file_set: NotRequired[FileSetWork | None]
    file_step: NotRequired[int]
    files: NotRequired[list[str]]
    flags: NotRequired[TransferFlags]
    flush: NotRequired[Flush]
    fsync: FsyncPolicy
    io_size_bytes: Bytes
    is_close_timed: NotRequired[bool]
    is_file_shared: bool
    is_preallocated: NotRequired[bool]
    kv: NotRequired[KvWork | None]
    limit: Limit
    lock: NotRequired[LockPolicy]
    manner: NotRequired[Manner]
    name: str
    opening: Opening
    pattern: Pattern
    primes_first_record: bool
    priority: NotRequired[Priority | None]
    program: NotRequired[Program | None]
    rate_ops_per_s: float | None
    region: NotRequired[Region | None]
    share: NotRequired[float | None]
    stream_buffer_bytes: NotRequired[Bytes]
    think_ns: Ns
    vectors: NotRequired[int]
    workers: int


class Phase(TypedDict):
    """Tenants that run at once."""

    cuts_ns: NotRequired[list[Ns]]
    engine: NotRequired[str | None]
    ignores: NotRequired[list[str]]
    is_stonewalled: bool
    keeps_files: bool
    name: str
    pause_after_ns: NotRequired[Ns]
    records_per_op: NotRequired[int]
    tenants: list[Tenant]


WorkersAs: TypeAlias = Literal["threads", "processes"]
"""Way in which workers share the machine."""


class Workload(TypedDict):
    """Phases on shared files, with one engine."""

    content: Content
    engine: str
    file_sets: NotRequired[list[FileSet]]
    goes_on_after_failure: NotRequired[bool]
    interval_ns: Ns
    is_calibrated: bool
    key_spaces: NotRequired[list[KeySpace]]
    name: str
    phases: list[Phase]
    pin_cpus: list[int]
    seed: Seed
    verify: NotRequired[Verify]
    version: int
    workers_as: WorkersAs


class AskedTrial(TypedDict):
    """A trial spec of the agent protocol, as far as targets differ in it."""

    cache: NotRequired[Cache | None]
    changes: NotRequired[list[KnobChange]]
    io_groups: NotRequired[list[IoGroup]]
    knobs: NotRequired[dict[str, str]]
    memory_limit_bytes: NotRequired[int | None]
    stack: NotRequired[Stack | None]
    workload: Workload


Backend: TypeAlias = Literal["auto", "tracefs", "perf"]
"""Name of a way of recording."""


class BonnieCell(TypedDict):
    """Rate and processor share of a phase, as printed; empty: it did not run."""

    cpu: str
    latency: str
    rate: str


class BonnieWorkerResult(TypedDict):
    """One worker."""

    bytes: int
    ops: int


class BonniePhaseResult(TypedDict):
    """One phase."""

    cpu_ns: int
    elapsed_ns: int
    latency_ns_max: int
    name: str
    workers: list[BonnieWorkerResult]


class BonnieRowResult(TypedDict):
    """Phases of one run."""

    is_failed: NotRequired[bool]
    phases: list[BonniePhaseResult]


class BonnieEventBegin(TypedDict):
    """Before the first run."""

    event: Literal["begin"]


class BonnieEventRow(BonnieRowResult):
    """A run was measured, or as much of it as there is."""

    event: Literal["row"]


class BonnieEventRowAside(BonnieRowResult):
    """Row of results for standard error."""

    event: Literal["row_aside"]


class BonnieEventEnd(TypedDict):
    """After the last run."""

    event: Literal["end"]


class BonnieEventTable(TypedDict):
    """`bon_csv2txt` of these lines; the answer is JSON."""

    event: Literal["table"]
    text: str


BonnieEvent: TypeAlias = (
    BonnieEventBegin | BonnieEventRow | BonnieEventRowAside | BonnieEventEnd | BonnieEventTable
)
"""Event of a run."""


class BonnieLine(TypedDict):
    """One result."""

    cells: list[BonnieCell]
    chunk: str
    concurrency: str
    directories: str
    file_size: str
    files: str
    name: str
    program: str
    seed: str
    seekers: str
    seeks: str
    size_max: str
    size_min: str


class BoundaryOf(TypedDict):
    """User and policy of an agent that another user started through sudo."""

    classes: list[str]
    policy: str
    uid: int


By: TypeAlias = Literal["device", "process", "direction", "size"]
"""Name of a group."""


class CacheRecord(TypedDict):
    """State of the page cache when the timed region began."""

    asked: str
    method: str
    resident_before_share: float


class Capabilities(TypedDict):
    """Abilities of a target, as data: the core asks 'can you?' and never 'who are you?'."""

    can_verify: bool
    default_access: Access
    depth_max: int
    flags: TransferFlags
    has_allocate: bool
    has_append: bool
    has_deallocate: bool
    has_direct: bool
    has_end: bool
    has_flags: bool
    has_kernel_threads: bool
    has_key_value: bool
    has_links: bool
    has_lock: bool
    has_mapping: bool
    has_namespace: bool
    has_plain: bool
    has_small_calls: bool
    has_store: bool
    has_stream: bool
    has_vectors: bool
    has_zeroing: bool
    is_asynchronous: bool
    is_simulated: bool
    keeps_nothing: bool


CheckStatus: TypeAlias = Literal["ok", "warn", "fail"]
"""Verdict of a check."""


class Check(TypedDict):
    """One check of the doctor."""

    hint: str
    message: str
    name: str
    status: CheckStatus


class Checks(TypedDict):
    """Answer to `doctor`."""

    checks: list[Check]


ChosenBy: TypeAlias = Literal["shortest", "operations", "switches", "longest"]
"""Rule that decided the length of slices."""


class Histogram(TypedDict):
    """The form in which histograms are stored and exchanged: only the counts that are not zero."""

    count: int
    counts: list[list[int]]
    max: int
    min: int
    sub_bucket_bits: int
    sum: int
    unit: str


class ClassHistograms(TypedDict):
    """One histogram per class of op that occurred."""

    read: Histogram | None
    sync: Histogram | None
    write: Histogram | None


ClassShare = TypedDict(
    "ClassShare",
    {
        "accesses": int,
        "bytes": int,
        "class": AccessClass,
        "share": float,
    },
)
"""One row of a report."""


class Closed(TypedDict):
    """Answer to `close_testbed`."""

    actions: list[Action]
    is_restored: bool
    problems: list[str]


WaitFor: TypeAlias = Literal["semaphores", "front_end"]
"""For whom a phase waits."""


class Waits(TypedDict):
    """Condition that is awaited before each phase."""

    kind: WaitFor
    numbers: dict[str, int]


class CommandExtras(TypedDict):
    """Requests of a command line to the front end beside measuring."""

    devices_not_used: NotRequired[list[str]]
    first_cpu: int | None
    is_read_only: bool
    is_scratch: bool
    random_file: str | None
    semaphores: int | None
    user: list[str]
    waits: Waits | None
    workbook: str | None


class CommonOptions(TypedDict):
    """Options that iolab adds to every dialect."""

    is_compat: bool
    is_help: bool
    is_resumed: bool
    is_traced: bool
    on: str | None
    out: str | None
    overwrite: list[str]
    repeat: int
    testbed: list[list[str]]
    trace_events: str | None


IozoneTest: TypeAlias = Literal[
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
    "mix",
    "pwrite",
    "repwrite",
    "pread",
    "repread",
    "pwritev",
    "preadv",
]
"""Name of a test."""


class IozoneRow(TypedDict):
    """One row of the table, or one table of throughput mode."""

    children: int
    file_kb: int
    name: str
    record_kb: int
    tests: list[IozoneTest]
    workload: Workload


class IozoneColumns(TypedDict):
    """Choice of columns of the table."""

    has_no_retest: bool
    has_positioned: bool
    has_streams: bool
    has_vectored: bool
    is_fwrite_blank: bool
    is_short: bool


class IozoneSideFiles(TypedDict):
    """Choice of these files."""

    has_histograms: bool
    has_latencies: bool
    has_stamps: bool
    limits_ns: list[int]
    logged: list[IozoneTest]


class IozoneThroughput(TypedDict):
    """Throughput mode."""

    child: str
    children: int
    range: list[int] | None


IozoneUnit: TypeAlias = Literal["kilo_bytes", "operations", "microseconds"]
"""Unit of the results."""


class ShownByIozone(TypedDict):
    """Form of the results."""

    banner: list[str]
    cache_kb: int
    cache_line: int
    columns: IozoneColumns
    command: str
    has_children: bool
    has_cpu: bool
    has_machine: bool
    has_report: bool
    last_lines: list[str]
    paused: list[IozoneTest]
    side: IozoneSideFiles
    start_delay_ns: int
    stride: int
    throughput: IozoneThroughput | None
    time_lines: list[str]
    unit: IozoneUnit


class CommandPlanShownByIozone(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[IozoneRow]
    show: ShownByIozone


class ControlGroup(TypedDict):
    """A control group of some tenants of a row."""

    tenants: list[str]
    weight: NotRequired[int | None]


class CommandRow(TypedDict):
    """Workload that is measured at once, where there is no more to say about it."""

    children: int
    control_groups: NotRequired[list[ControlGroup]]
    file_kb: int
    name: str
    record_kb: int
    workload: Workload


class ShownByBonnie(TypedDict):
    """Form of the results."""

    command: str
    is_csv_only: bool
    is_quiet: bool
    line: BonnieLine
    runs: int
    size: str


class CommandPlanShownByBonnie(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[CommandRow]
    show: ShownByBonnie


class MkfileIostat(TypedDict):
    """Reports of an iostat that looks on."""

    has_names_last: bool
    has_processors: bool
    hides_idle: bool
    interval_ns: int
    is_linux: bool
    reports: int | None


class ShownByMkfile(TypedDict):
    """Form of the results."""

    bytes: int
    iostat: MkfileIostat | None
    is_clocked: bool
    is_verbose: bool


class CommandPlanShownByMkfile(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[CommandRow]
    show: ShownByMkfile


class FioCommand(TypedDict):
    """A command of a job, which the user has allowed."""

    file: str
    is_before: bool
    job: str
    line: str
    times: int


FioEta: TypeAlias = Literal["auto", "always", "never"]
"""Occasion on which a line of progress is shown."""


FioFormat: TypeAlias = Literal["normal", "terse", "json", "json_plus"]
"""A form of the results."""


class FioHead(TypedDict):
    """A job before it runs."""

    clones: int
    depth: int
    engine: str
    group: int
    name: str
    rw: str
    sizes: list[list[int]]


class FioLogSource(TypedDict):
    """A clone's work in one phase."""

    file: str
    first_path: int
    first_target: int
    has_submissions: bool
    phase: int
    tenant: int
    worker: int


FioLogKind: TypeAlias = Literal[
    "bandwidth",
    "iops",
    "latency",
    "submission",
    "completion",
    "histogram",
    "actions",
]
"""Kind of numbers in a log."""


class FioLog(TypedDict):
    """One log."""

    block_bytes: int
    clones: list[list[FioLogSource]]
    coarseness: int
    engine_window_ns: int
    file: str
    has_offsets: bool
    is_maximum: bool
    is_unix_time: bool
    kind: FioLogKind
    priority: int
    ramp_ns: int
    targets: list[str]
    window_ns: int


class FioVerifyState(TypedDict):
    """Content of a file of state."""

    iolab_verify_state: int
    seed: Seed
    write_bytes: int
    writes: int


class FioVerifyStateFile(TypedDict):
    """A file of state, and whose it is."""

    depth: int
    file: str
    phase: int
    state: FioVerifyState
    tenant: int
    worker: int


class FioRulesShow(TypedDict):
    """Way in which the rules of a unit are told."""

    depth: int
    has_errors: bool
    percent: float | None
    steady: SteadyRule | None
    target_ns: int
    window_ns: int


class FioUnit(TypedDict):
    """Results of clones that are told together."""

    clones: int
    depth: int
    description: str | None
    disabled: list[bool]
    group: int
    is_joined: bool
    is_null: bool
    is_told_twice: bool
    is_unified: bool
    is_untold: bool
    letter: str
    name: str
    name_bytes: int
    options: list[list[str]]
    percentile_list: list[float]
    percentiles: list[bool]
    place: list[int]
    ramp_ns: int
    rules: FioRulesShow
    space_bytes: list[int]
    trim_bytes: int
    verified: list[int] | None


class ShownByFio(TypedDict):
    """Form of the results."""

    are_dumped: bool
    are_threads: bool
    commands: list[FioCommand]
    eta: FioEta
    eta_newline_ns: int
    formats: list[FioFormat]
    globals: list[list[str]]
    heads: list[FioHead]
    logs: list[FioLog]
    output: str | None
    scheduler: str | None
    states: list[FioVerifyStateFile]
    status_ns: int
    terse_version: int
    units: list[FioUnit]


class CommandPlanShownByFio(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[CommandRow]
    show: ShownByFio


class FilebenchCommand(TypedDict):
    """A command that runs before the run, as `system` says."""

    line: str


class FilebenchFiles(TypedDict):
    """A fileset as it is told."""

    bytes: int
    depth: float
    entries: int
    is_file: bool
    leafs: int
    name: str
    width: int


FilebenchCounts: TypeAlias = Literal["operation", "read", "write", "control"]
"""Group that a flow operation is counted in."""


class FilebenchFlowop(TypedDict):
    """A flow operation as it is told."""

    counts: FilebenchCounts
    name: str
    parts: list[list[int | str]]


FilebenchFormat: TypeAlias = Literal["text", "old", "json"]
"""Form of the results."""


class ShownByFilebench(TypedDict):
    """Form of the results."""

    commands: list[FilebenchCommand]
    files: list[FilebenchFiles]
    flowops: list[FilebenchFlowop]
    format: FilebenchFormat
    has_histograms: bool
    is_set_back: bool
    is_timeout: bool
    output: str | None
    period_s: int
    processes: list[list[str | int]]
    said: list[str]


class CommandPlanShownByFilebench(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[CommandRow]
    show: ShownByFilebench


class ShownByYcsb(TypedDict):
    """Form of the results."""

    banner: list[str]
    buckets: int
    exporter: str
    granularity_ms: int
    has_no_summary: bool
    has_status_in_results: bool
    hdr_path: str | None
    interval: str
    is_logged: bool
    is_printed: bool
    is_verbose: bool
    kind: str
    label: str
    output: str | None
    percentiles: list[str]
    properties: list[str]
    raw_file: str | None


class CommandPlanShownByYcsb(TypedDict):
    """Everything about one command line."""

    asked: CommandExtras
    cache: str
    common: CommonOptions
    dialect: str
    directory: str
    files: list[str]
    notes: list[str]
    only_text: str | None
    rows: list[CommandRow]
    show: ShownByYcsb


CommandPlan: TypeAlias = (
    CommandPlanShownByIozone
    | CommandPlanShownByBonnie
    | CommandPlanShownByMkfile
    | CommandPlanShownByFio
    | CommandPlanShownByFilebench
    | CommandPlanShownByYcsb
)
"""A command line, understood."""


class HostReading(TypedDict):
    """Time of the processors of a simulated machine, and what waits in it, up to a reading."""

    calls_ns: int
    idle_ns: int
    queue_busy_ns: int
    queued_ns: int
    system_ns: int
    user_ns: int
    wait_ns: int


class CounterSeries(TypedDict):
    """Counters of a block device, read again and again."""

    at_ns: list[int]
    counters: list[list[int]]
    host: NotRequired[list[HostReading]]


class CpuRecord(TypedDict):
    """CPU time of the harness and its workers during the timed region, and what it was taken
    for.
    """

    context_switches: int
    major_faults: int
    minor_faults: int
    system_ns: int
    user_ns: int


class Demand(TypedDict):
    """Space that the programs of a workload may take; streams are not in it."""

    file_bytes: int
    is_file_bound: bool
    laid_bytes: int
    main_bytes: int
    moved_bytes: int | None
    places: dict[str, int]
    time_ns: Ns
    written_bytes: int | None


class DepthPoint(TypedDict):
    """One depth."""

    depth: int
    rate: float
    response_us: float


class DepthRow(TypedDict):
    """A depth over the whole trace."""

    at_end: int
    busy_share: float
    max: int
    mean: float


class DepthSweep(TypedDict):
    """Rate over depth."""

    alone_us: float
    knee: float
    points: list[DepthPoint]
    rate_max: float


class PlotColumn(TypedDict):
    """One column of the strips below the picture."""

    median_seek_bytes: int | None
    read_bytes: int
    requests: int
    written_bytes: int


class Moves(TypedDict):
    """Requests that an animation shows; the lists have one length."""

    bytes: list[int]
    every: int
    offsets: list[int]
    times_ns: list[int]


class Picture(TypedDict):
    """The picture as data: rows of columns, from the first byte on."""

    column: int
    first_byte: int
    reads: list[list[int]]
    row_bytes: int
    writes: list[list[int]]


class DevicePlot(TypedDict):
    """Picture of one device."""

    columns: list[PlotColumn]
    device: str
    moves: Moves
    picture: Picture
    requests: int
    sequential_share: float


class RequestCounters(TypedDict):
    """Merges and times of the requests of a block device during the timed region."""

    in_queue_ns: int
    read_merges: int
    read_ticks_ns: int
    write_merges: int
    write_ticks_ns: int


class DeviceRecord(TypedDict):
    """Work of a block device."""

    flushed_write_bytes: int
    io_ticks_ns: int
    name: str
    read_bytes: int
    reads: int
    requests: NotRequired[RequestCounters | None]
    series: NotRequired[CounterSeries | None]
    write_bytes: int
    writes: int


class SizeShare(TypedDict):
    """Accesses of one size."""

    bytes: int
    count: int
    share: float


class DirectionSizes(TypedDict):
    """Sizes of the accesses of one direction."""

    different: int
    drawn: list[SizeShare]


class Doctor(TypedDict):
    """Parameters of `doctor`."""

    paths: list[str]


class Durations(TypedDict):
    """Times in nanoseconds."""

    mean_ns: float
    p50_ns: int
    p99_ns: int


ErrorCode: TypeAlias = Literal["usage", "refused", "failed", "restore_incomplete", "interrupted"]
"""Code of an error."""


class ErrorBody(TypedDict):
    """Reason why a request failed."""

    code: ErrorCode
    hint: str
    message: str


ErrorBranch: TypeAlias = Literal["study", "dialect", "trace"]
"""Exception of Python that an error becomes."""


class ErrorPlace(TypedDict):
    """Place of an error."""

    begin: int
    end: int
    line: str
    source: str


EventSet: TypeAlias = Literal["full", "issue_complete"]
"""Name of a set of block events."""


class Explanation(TypedDict):
    """State of the model at one decision."""

    at_ns: int
    chosen: int | None
    decided_at_ns: int | None
    is_race: bool | None
    issue: int
    recorded: int
    state: list[str]


ExtensionErrorCode: TypeAlias = Literal[
    "border",
    "unknown_name",
    "value",
    "syntax",
    "contradiction",
    "unsupported",
    "system",
    "damaged",
    "internal",
]
"""Kind of an error of the extension."""


class ExtensionError(TypedDict):
    """An error of the extension. For people it reads `message`, `between`, `hint`, one after the
    other.
    """

    between: str
    branch: ErrorBranch
    code: ExtensionErrorCode
    hint: str
    message: str
    place: ErrorPlace | None
    values: dict[str, str]


class FigurePair(TypedDict):
    """A figure of both traces."""

    figure: str
    first: float | None
    ratio: float | None
    second: float | None


class ProcessFigures(TypedDict):
    """Figures of one process in one direction."""

    direction: str
    outstanding: int
    process: int
    requests: int
    share: float
    wait_ns: float


class Figures(TypedDict):
    """The figures of one stream."""

    ascending: float
    joined: int
    merges: int
    processes: list[ProcessFigures]
    requests: int


class FileBirth(TypedDict):
    """A file that was made and not closed yet; a copy has another inode, a successor another
    birth.
    """

    born_ns: int
    device: int
    inode: int


class FileMark(TypedDict):
    """A file as it was when iolab had closed it; another inode or a later change is somebody
    else's.
    """

    changed_ns: int
    device: int
    inode: int
    modified_ns: int
    size_bytes: int


class StableWaits(TypedDict):
    """Numbers of waits for stable storage."""

    dsync_writes: int
    fdatasync: int
    flushes: int
    fsync: int
    ranges: int
    sync_writes: int


class FilePauses(TypedDict):
    """Pauses of a file: between all its accesses, between its reads and between its writes."""

    all: AccessPauses
    idle_ns: int
    reads: AccessPauses
    writes: AccessPauses


class PatternPhase(TypedDict):
    """A part of a file's accesses that is alike."""

    accesses: int
    before_ns: int
    direction_spans: list[list[int] | None]
    directions: list[AccessPattern] | None
    first: int
    is_stream_each: bool
    mean_bytes: int
    pattern: AccessPattern
    pauses: AccessPauses
    random_shares: list[float]
    read_share: float
    read_sizes: DirectionSizes
    size: int | None
    span: list[int] | None
    stride: int | None
    waits: StableWaits
    write_sizes: DirectionSizes


class Moved(TypedDict):
    """A number of accesses and their bytes."""

    bytes: int
    count: int


class FilePattern(TypedDict):
    """Access pattern of a file or a device."""

    aligned_4k_share: float | None
    alignment: int | None
    allocations: Allocations
    before_first: list[int]
    begins_ns: int | None
    classes: list[ClassShare]
    depth: int
    direct: int
    direction_spans: list[list[int] | None]
    directions: list[AccessPattern] | None
    emptied: int
    has_durations: bool
    idle_waits: StableWaits
    is_direct: bool
    is_mapped: bool
    is_opened_before: bool
    is_reuse_cut: bool
    is_size_by_request: bool
    is_stream_each: bool
    lasted_ns: int | None
    name: str
    only_task: int | None
    pattern: AccessPattern
    pauses: FilePauses
    phases: list[PatternPhase]
    picture: Picture | None
    queue_depth: int
    random_shares: list[float]
    read_sizes: DirectionSizes
    readers_and_writers: list[int] | None
    reads: Moved
    reads_at_end: int
    reuse_bytes: int | None
    reused_share: float | None
    sentence: str
    service: Durations | None
    size_count: int
    size_range: list[int] | None
    sizes: list[SizeShare]
    sought: int
    sought_in_vain: int
    span: list[int] | None
    stream_distance: int | None
    streams: int
    stride: int | None
    stride_share: float | None
    syncs: int
    think: Durations | None
    vectored: int
    waits: StableWaits
    write_sizes: DirectionSizes
    writes: Moved
    writes_per_sync: float | None
    written_back: int


class ReplaceableMade(TypedDict):
    """File that an earlier trial left, unchanged."""

    made: FileMark


class ReplaceableBegun(TypedDict):
    """Made by an earlier trial, which was killed."""

    begun: FileBirth


Replaceable: TypeAlias = ReplaceableMade | ReplaceableBegun | Literal["named"]
"""Reason why a file may be replaced."""


class FileRules(TypedDict):
    """Permissions for files that are there already: to be removed, made anew or written; any
    other stays.
    """

    replaceable: dict[str, Replaceable]


NamedKind: TypeAlias = Literal["file", "folder", "store"]
"""Kind of what the name of a file stands for."""


class FileUse(TypedDict):
    """Use of a file, or of a directory of many, by the phases of a workload. A name that stands
    for both has a use of each kind: a check of files must not miss one for what else has its
    name.
    """

    is_changed: bool
    is_expected: bool
    kind: NamedKind
    name: str
    opening: Opening
    phase: str


class FilebenchCpu(TypedDict):
    """CPU time."""

    system_ns: int
    user_ns: int


class FilebenchPart(TypedDict):
    """`CountedAs` of an operation between two reports."""

    bytes: int
    latency: Histogram
    ops: int


class FilebenchOperation(TypedDict):
    """One operation."""

    bytes: int
    id: str
    latency: Histogram
    ops: int
    parts: NotRequired[list[FilebenchPart]]


class FilebenchWorkerResult(TypedDict):
    """One thread."""

    ended_by: NotRequired[str | None]
    first_error: NotRequired[str | None]
    worker: NotRequired[int]


class FilebenchTenantResult(TypedDict):
    """Equal threads."""

    operations: NotRequired[list[FilebenchOperation]]
    workers: list[FilebenchWorkerResult]


class FilebenchPhaseResult(TypedDict):
    """The phase of a record."""

    cpu: NotRequired[FilebenchCpu]
    elapsed_ns: int
    tenants: list[FilebenchTenantResult]


class FilebenchRowResult(TypedDict):
    """One run."""

    phases: list[FilebenchPhaseResult]
    whole_ns: NotRequired[int]


class FioClasses(TypedDict):
    """Latencies by class."""

    read: NotRequired[Histogram | None]
    sync: NotRequired[Histogram | None]
    write: NotRequired[Histogram | None]


class FioCpu(TypedDict):
    """CPU time."""

    context_switches: NotRequired[int]
    major_faults: NotRequired[int]
    minor_faults: NotRequired[int]
    system_ns: int
    user_ns: int


class FioDeviceRequests(TypedDict):
    """Merges and times of the requests of a device."""

    in_queue_ns: int
    read_merges: int
    read_ticks_ns: int
    write_merges: int
    write_ticks_ns: int


class FioDevice(TypedDict):
    """Work of a device."""

    io_ticks_ns: int
    name: str
    reads: int
    requests: NotRequired[FioDeviceRequests | None]
    writes: int


class FioOperation(TypedDict):
    """One operation of a program."""

    id: NotRequired[str]
    latency: Histogram
    ops: int


class FioSegment(TypedDict):
    """Counts between two cuts."""

    from_ns: int
    service: FioClasses


class FioSeries(TypedDict):
    """Operations in equal slices of time."""

    bytes: list[int]
    interval_ns: int
    ops: list[int]


class FioSubmissions(TypedDict):
    """Times of handing transfers over, and from there to their ends."""

    completion: FioClasses
    submission: FioClasses


class SteadyReport(TypedDict):
    """Rate that was to become steady, as it was seen."""

    bytes_per_s: list[int]
    is_attained: bool
    ops_per_s: list[int]


class Tolerated(TypedDict):
    """Failures that ended nothing, because the tenant goes on after them."""

    errors: int
    first: str
    first_errno: int


class FioWorkerResult(TypedDict):
    """One worker."""

    depth_found: NotRequired[int | None]
    elapsed_ns: int
    first_error: NotRequired[str | None]
    mismatch_count: NotRequired[int]
    ops: NotRequired[int]
    read_bytes: int
    steady: NotRequired[SteadyReport | None]
    tolerated: NotRequired[Tolerated | None]
    used: NotRequired[FioCpu | None]
    write_bytes: int


class FioTenantResult(TypedDict):
    """Equal workers."""

    name: str
    operations: NotRequired[list[FioOperation]]
    response: NotRequired[FioClasses | None]
    segments: NotRequired[list[FioSegment]]
    series: FioSeries
    service: FioClasses
    submissions: NotRequired[FioSubmissions | None]
    workers: list[FioWorkerResult]


class FioPhaseResult(TypedDict):
    """One phase of a record."""

    cpu: NotRequired[FioCpu]
    devices: NotRequired[list[FioDevice]]
    elapsed_ns: int
    name: str
    tenants: list[FioTenantResult]


class FioTransferred(TypedDict):
    """Bytes and transfers of reads and writes."""

    read_bytes: int
    reads: int
    write_bytes: int
    writes: int


class FioProgress(TypedDict):
    """State of a running job."""

    before: NotRequired[FioTransferred]
    elapsed_ns: int
    ended: int
    interval_ns: int
    phase_ns: int
    phases: list[FioPhaseResult]


class FioProgressLine(TypedDict):
    """A line, and what the next one is compared with."""

    line: str
    moved: FioTransferred


class FioRowResult(TypedDict):
    """Phases of one run."""

    elapsed_s: NotRequired[int]
    ended: NotRequired[str]
    ended_ms: NotRequired[int]
    error: NotRequired[str | None]
    phases: list[FioPhaseResult]
    pid: NotRequired[int]


class FittedLine(TypedDict):
    """A straight line."""

    intercept: float
    slope: float


FsyncChoice: TypeAlias = Literal["none", "after", "timed"]
"""Place of the final fsync: inside the timing (`IOzone`'s -e), after it, or not made."""


class OpenJournal(TypedDict):
    """A journal with changes that are not undone."""

    entries: int
    run: str


class Greeted(TypedDict):
    """Answer to `hello`."""

    boot_id: str
    boundary: BoundaryOf | None
    is_root: bool
    open_journals: list[OpenJournal]
    protocol: int
    uid: int
    version: str


class TraceAmount(TypedDict):
    """Requests and bytes."""

    bytes: int
    count: int


Stage: TypeAlias = Literal[
    "Q2Q",
    "Q2A",
    "Q2G",
    "S2G",
    "G2I",
    "Q2M",
    "I2D",
    "M2D",
    "Q2D",
    "D2C",
    "Q2C",
    "flush",
]
"""Name of a stage."""


class StageRow(TypedDict):
    """Durations of one stage."""

    count: int
    max_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: int
    p90_ns: int
    p999_ns: int
    p99_ns: int
    stage: Stage
    sum_ns: int


class GroupRow(TypedDict):
    """One group of a device."""

    bytes_share: float
    completed: TraceAmount
    name: str
    queued: TraceAmount
    stages: list[StageRow]


class Hello(TypedDict):
    """Parameters of `hello`."""

    is_dry_run: bool
    protocol: int
    run: str
    state_dir: str | None


class HostWrites(TypedDict):
    """Bytes that the kernel counted as written to the whole device."""

    before_bytes: int
    trial_bytes: int


class ImportOptions(TypedDict):
    """Facts that the lines do not tell."""

    device: NotRequired[str | None]
    fs: NotRequired[str | None]
    memory: NotRequired[str | None]
    name: NotRequired[str]
    release: NotRequired[int | None]
    title: NotRequired[str]


class ImportedLine(TypedDict):
    """A line, and what it did."""

    effect: str
    is_caution: bool
    place: str
    tunable: str
    typed: str
    value: str


class ImportedConfig(TypedDict):
    """Lines, read."""

    fs: str | None
    problem: str | None
    remedy: str | None
    rows: list[ImportedLine]
    stack: str | None


class Interim(TypedDict):
    """Interim results of the phases, as `so_far` of the event `progress`."""

    every_ns: int
    has_times: bool


class IozoneChild(TypedDict):
    """A child of a test."""

    child: int
    is_writer: bool
    test: IozoneTest


class IozoneWorkerResult(TypedDict):
    """One child."""

    bytes: int
    call_ns: int
    child: int
    elapsed_ns: int
    ops: int


class IozonePhaseResult(TypedDict):
    """One phase."""

    cpu_ns: int
    elapsed_ns: int
    name: IozoneTest
    parent_ns: NotRequired[int | None]
    workers: list[IozoneWorkerResult]


class IozoneRequest(TypedDict):
    """Wishes for a test; the JSON that the Python front passes."""

    access: NotRequired[Access]
    content: NotRequired[Content]
    depth: NotRequired[int]
    durability: NotRequired[Durability]
    engine: str
    file_bytes: Bytes
    flags: NotRequired[TransferFlags]
    flush: NotRequired[Flush]
    fsync: NotRequired[FsyncChoice]
    fsync_every: NotRequired[int]
    io_size_bytes: Bytes
    is_cold: NotRequired[bool]
    is_preallocated: NotRequired[bool]
    lock: NotRequired[LockPolicy]
    pin_cpus: NotRequired[list[int]]
    seed: Seed
    stride: NotRequired[int]
    tests: list[IozoneTest]
    vectors: NotRequired[int]
    verify: NotRequired[Verify]
    workers: NotRequired[int]
    workers_as: NotRequired[WorkersAs]


class IozoneRowResult(TypedDict):
    """Phases of one row."""

    index: int
    is_failed: NotRequired[bool]
    phases: list[IozonePhaseResult]


class IozoneSidePartOperations(TypedDict):
    """Operations, in the order of their ends."""

    is_first: bool
    operations: list[list[int]]
    part: Literal["operations"]
    times_ns: NotRequired[list[int] | None]
    who: IozoneChild


class IozoneSidePartHistogram(TypedDict):
    """Number of operations in each band."""

    counts: list[int]
    part: Literal["histogram"]
    who: IozoneChild


class IozoneSidePartStamps(TypedDict):
    """Times at which a test began and ended, as ctime(3) writes them."""

    began: str
    ended: str
    part: Literal["stamps"]
    who: IozoneChild


IozoneSidePart: TypeAlias = (
    IozoneSidePartOperations | IozoneSidePartHistogram | IozoneSidePartStamps
)
"""A part of what happened."""


class Judgement(TypedDict):
    """Result of a case."""

    expected: str
    id: str
    is_ok: bool
    obtained: str
    scheduler: str
    title: str


class KeptBlock(TypedDict):
    """A block that is not what was written."""

    at_bytes: int
    expected: NotRequired[str | None]
    received: str


KernelLayer: TypeAlias = Literal[
    "syscalls",
    "file_calls",
    "writeback",
    "ext4",
    "jbd2",
    "page_cache",
    "read_ahead",
]
"""Name of a layer of the kernel."""


class KvFact(TypedDict):
    """A value that a store tells of itself after a phase."""

    name: str
    value: float


class KvLatency(TypedDict):
    """Latencies of a series."""

    hdr_counts: list[int]
    hdr_parts: list[int]
    max_us: int
    min_us: int
    ms_counts: NotRequired[list[int]]
    ops: int
    sum_squares_us2: float
    sum_us: int
    window_ops: NotRequired[list[int]]
    window_sums_us: NotRequired[list[int]]


class KvReturned(TypedDict):
    """Number of operations with a result."""

    count: int
    status: str


class KvSeriesRecord(TypedDict):
    """Counts of a series of operations."""

    intended: NotRequired[KvLatency | None]
    latency: KvLatency
    name: str
    returned: list[KvReturned]


class KvRecord(TypedDict):
    """Counts of clients of a store, and values that the store tells of itself."""

    began_unix_ms: int
    facts: NotRequired[list[KvFact]]
    first_error: NotRequired[str | None]
    loaded: int
    opening_ns: int
    running_ns: int
    series: list[KvSeriesRecord]
    store: str
    user_write_bytes: int
    version: NotRequired[str | None]


class LiveAmount(TypedDict):
    """Amount of one operation in an interval."""

    bytes: int
    count: int


class LiveDepth(TypedDict):
    """Number of requests at once in an interval."""

    max: int
    mean: float


class LiveLatency(TypedDict):
    """Times that ended in an interval."""

    count: int
    max_ns: int
    p50_ns: int
    p99_ns: int
    ranges: list[int]


class LiveProcess(TypedDict):
    """Bytes that a process asked devices for in an interval."""

    name: str
    pid: int
    read_bytes: int
    write_bytes: int


class LiveSecond(TypedDict):
    """One interval of devices that are watched: a second, the last one may be shorter."""

    device: LiveLatency
    discards: LiveAmount
    errors: int
    events: int
    flushes: int
    forgotten: int
    in_device: LiveDepth
    in_queue: LiveDepth
    interval_ns: int
    lost: int
    number: int
    other_bytes: int
    processes: list[LiveProcess]
    reads: LiveAmount
    whole: LiveLatency
    writes: LiveAmount


Mark = TypedDict(
    "Mark",
    {
        "asked_ns": int,
        "began_ns": int,
        "done_ns": int,
        "from": str | None,
        "knob": str,
        "to": str | None,
    },
)
"""A knob that was changed while a phase ran."""


class Mismatch(TypedDict):
    """A mismatch between what was written and what was read."""

    block_bytes: int
    file: str
    kept: NotRequired[KeptBlock | None]
    kind: str
    message: str
    offset_bytes: int


PatternName: TypeAlias = Literal[
    "sequential",
    "reverse",
    "stride",
    "permutation",
    "uniform",
    "same",
]
"""Name of a pattern."""


class StreamRequest(TypedDict):
    """One stream: a number of equal workers with a pattern, a depth and perhaps a rate."""

    begins_ns: NotRequired[Ns]
    depth: NotRequired[int]
    ends_ns: NotRequired[Ns | None]
    file_bytes: Bytes
    flags: NotRequired[TransferFlags]
    flush: NotRequired[Flush]
    fsync_every: NotRequired[int]
    io_size_bytes: Bytes
    is_preallocated: NotRequired[bool]
    lock: NotRequired[LockPolicy]
    name: str
    ops: NotRequired[int | None]
    pattern: PatternName
    priority: NotRequired[Priority | None]
    rate_ops_per_s: NotRequired[float | None]
    read_share: float
    share: NotRequired[float | None]
    think_ns: NotRequired[Ns]
    vectors: NotRequired[int]
    workers: NotRequired[int]


class MixedRequest(TypedDict):
    """Wishes for a mixed workload; the JSON that the Python front passes."""

    access: NotRequired[Access]
    content: NotRequired[Content]
    cuts_ns: NotRequired[list[Ns]]
    durability: NotRequired[Durability]
    duration_ns: Ns
    engine: str
    name: NotRequired[str]
    pin_cpus: NotRequired[list[int]]
    seed: Seed
    streams: list[StreamRequest]
    verify: NotRequired[Verify]
    workers_as: NotRequired[WorkersAs]


class MkfileEventBegin(TypedDict):
    """Before the first file."""

    event: Literal["begin"]


class MkfileEventRow(TypedDict):
    """A file was made, or was not."""

    event: Literal["row"]
    index: int


class MkfileEventEnd(TypedDict):
    """After the last one."""

    event: Literal["end"]


MkfileEvent: TypeAlias = MkfileEventBegin | MkfileEventRow | MkfileEventEnd
"""Event of a run."""


class Nothing(TypedDict):
    """No parameters, or an answer without a value: `{}`."""


class TraceCaveat(TypedDict):
    """Something in a trace that did not keep it from being read."""

    is_damage: bool
    text: str


class OnlyReadAnswer(TypedDict):
    """Part of every answer beside its content."""

    caveats: list[TraceCaveat]
    format: str


class Warning(TypedDict):  # noqa: A001
    """A typed caveat: `code` is stable, `message` says what was seen, `hint` what to do about
    it.
    """

    code: str
    hint: str
    message: str


OpenedTestbed = TypedDict(
    "OpenedTestbed",
    {
        "actions": list[Action],
        "class": str,
        "devices": list[str],
        "directory": str,
        "facts": dict[str, str],
        "free_bytes": int,
        "knob_devices": list[str],
        "schedulers": list[str],
        "warnings": list[Warning],
    },
)
"""Answer to `open_testbed`."""


OperationKind: TypeAlias = Literal[
    "read",
    "write",
    "mixed",
    "update",
    "sync",
    "name",
    "key_value",
    "other",
]
"""Name of a kind of operation."""


class Operation(TypedDict):
    """An operation of a workload: its id in the store, its engine and its nature."""

    access: Access | None
    engine: str
    id: str
    io_size_bytes: int | None
    kind: OperationKind
    reads: bool
    writes: bool


class OperationPart(TypedDict):
    """Counts of an operation between two cuts of a phase."""

    bytes: int
    latency: Histogram
    ops: int


class OperationCount(TypedDict):
    """An operation of a program: what it is, and what was counted of it."""

    access: Access | None
    bytes: int
    id: str
    io_size_bytes: int | None
    kind: OperationKind
    latency: Histogram
    ops: int
    parts: NotRequired[list[OperationPart]]
    response: NotRequired[Histogram | None]


class OutputFile(TypedDict):
    """An empty file that is to be filled: made by the front end, with the rights of its user."""

    device: int
    inode: int
    path: str


class PairsTenant(TypedDict):
    """A tenant of a cell."""

    access: Access | None
    io_size_bytes: int | None
    kind: OperationKind
    name: str


class PairsCell(TypedDict):
    """A phase of a treatment: one cell of the comparison."""

    access: Access | None
    io_size_bytes: int | None
    kind: OperationKind
    name: str
    tenants: list[PairsTenant]
    treatment: int


class PairsImage(TypedDict):
    """A file system of a session, on one of several devices made alike."""

    place: int
    stack: Stack


class StackRecord(TypedDict):
    """The stack as it really was."""

    effective_mount_options: str
    fs: str
    has_external_journal: bool
    mkfs_options: list[str]
    mount_options: list[str]
    parameters: NotRequired[list[str]]


class PairsImageRecord(TypedDict):
    """A file system as it was made for a session."""

    facts: dict[str, str]
    stack: StackRecord


class PairsSlices(TypedDict):
    """All slices, column by column."""

    begin_ns: list[int]
    bytes: list[int]
    cell: list[int]
    length_ns: list[int]
    longest_ns: list[int]
    ops: list[int]
    place: list[int]
    tenant: list[int]
    unit: list[int]
    workers: list[int]


class PairsUnit(TypedDict):
    """A balanced unit: every cell as often as any other."""

    began_ns: int
    elapsed_ns: int
    service: list[list[ClassHistograms]]


class PairsRecord(TypedDict):
    """Result of such a session."""

    cells: list[PairsCell]
    chosen_by: ChosenBy
    elapsed_ns: int
    knobs: list[dict[str, str]]
    places: int
    settle_ns: int
    slice_ns: int
    slices: PairsSlices
    slices_per_unit: int
    switch_cost_ns: int
    units: list[PairsUnit]
    washout_ns: int


class PairsTreatment(TypedDict):
    """One of what is alternated."""

    knobs: dict[str, str]
    place: NotRequired[int | None]
    workload: Workload


class PairsSpec(TypedDict):
    """A session that alternates treatments in slices, on files that are made once."""

    images: NotRequired[list[PairsImage]]
    seed: int
    settle_ns: int
    slice_max_ns: int
    slice_min_ns: int
    time_ns: int
    treatments: list[PairsTreatment]
    unit_ns: int
    units: int
    washout_ns: int


class PatternReport(TypedDict):
    """Access patterns of a trace."""

    bytes_left_out: int
    calls: int
    files: list[FilePattern]
    files_left_out: int
    files_of_other_names: int
    has_times: bool
    notes: list[str]


class PatternFoundAnswer(TypedDict):
    """Part of every answer beside its content."""

    caveats: list[TraceCaveat]
    format: str
    losses: list[str]
    report: PatternReport
    text: str
    workload: str | None


class PatternQuestion(TypedDict):
    """Wishes of who asks for patterns."""

    files_max: NotRequired[int | None]
    form: NotRequired[str | None]
    has_pictures: bool
    only: str


class PlacedFiles(TypedDict):
    """Files of a phase that have a place on the device, at its end."""

    extents: int
    files: int


class Segment(TypedDict):
    """Ops that ended between two cuts."""

    bytes: int
    from_ns: int
    ops: int
    service: ClassHistograms
    to_ns: int | None


class Series(TypedDict):
    """Ops, bytes and the longest latency of consecutive, equally wide slices of time."""

    bytes: list[int]
    interval_ns: int
    latency_ns_max: list[int]
    ops: list[int]


class SlicesOfTenant(TypedDict):
    """The slices of a tenant in one balanced unit, column by column."""

    begin_ns: list[int]
    bytes: list[int]
    length_ns: list[int]
    longest_ns: list[int]
    ops: list[int]
    place: NotRequired[list[int]]


class SubmissionTimes(TypedDict):
    """Times of handing ops over, and from there to their ends."""

    completion: ClassHistograms
    submission: ClassHistograms


class ThreadUse(TypedDict):
    """CPU time, switches and page faults of a thread."""

    context_switches: int
    major_faults: int
    minor_faults: int
    system_ns: int
    user_ns: int


class StreamReport(TypedDict):
    """Counts of a worker."""

    bytes: int
    call_ns: int
    depth_found: NotRequired[int | None]
    elapsed_ns: int
    ended_by: NotRequired[str | None]
    errors: int
    first_error: str | None
    gap_ns_max: int
    late_ops: int | None
    mismatch_count: NotRequired[int]
    mismatches: NotRequired[list[Mismatch]]
    missed_ops: int | None
    ops: int
    read_bytes: int
    run_delay_ns: NotRequired[int | None]
    started_ns: int
    steady: NotRequired[SteadyReport | None]
    tolerated: NotRequired[Tolerated | None]
    used: NotRequired[ThreadUse | None]
    worker: int
    write_bytes: int


class TenantOutcome(TypedDict):
    """All workers of a tenant together."""

    access: Access | None
    alike: int
    asked_ops: int | None
    began_ns: int
    depth_reached_mean: float
    io_size_bytes: int | None
    kind: OperationKind
    kv: NotRequired[KvRecord | None]
    name: str
    operations: NotRequired[list[OperationCount]]
    response: ClassHistograms | None
    segments: NotRequired[list[Segment]]
    series: Series
    service: ClassHistograms
    share: float | None
    slices: NotRequired[SlicesOfTenant | None]
    submissions: NotRequired[SubmissionTimes | None]
    workers: list[StreamReport]


class StageTimes(TypedDict):
    """Times of one stage of the requests in a block trace; percentiles are at most 1/128 too
    long.
    """

    count: int
    max_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: int
    p90_ns: int
    p999_ns: int
    p99_ns: int
    stage: str
    sum_ns: int


class PhaseTrace(TypedDict):
    """Summary of the block trace of a trial for one phase."""

    devices: list[Any]
    stages: dict[str, StageTimes]


class PhaseRecord(TypedDict):
    """Everything stored about one phase."""

    access: Access | None
    cache: CacheRecord
    cpu: CpuRecord
    devices: list[DeviceRecord]
    elapsed_ns: int
    harness_ns_per_op: float | None
    io_size_bytes: int | None
    kind: OperationKind
    marks: NotRequired[list[Mark]]
    name: str
    own_read_bytes: int | None
    parent_ns: NotRequired[int | None]
    placed: NotRequired[PlacedFiles | None]
    records_per_op: NotRequired[int]
    started_ns: int
    tenants: list[TenantOutcome]
    trace: NotRequired[PhaseTrace | None]
    warnings: list[Warning]


Precondition: TypeAlias = Literal["none", "fill", "fill2x", "random"]
"""Preparation of a device before the first trial."""


class TestbedSpecLoop(TypedDict):
    """A private loop device over an image file that iolab makes (class B)."""

    device_count: int
    image_dir: str
    kind: Literal["loop"]
    logical_block_bytes: int
    size_bytes: int
    twin_count: int


class TestbedSpecDirectory(TypedDict):
    """A directory on a live file system (class A; as root A+)."""

    allow_knobs_on: list[str]
    devices: NotRequired[list[str]]
    in_place: bool
    kind: Literal["directory"]
    path: str


class TestbedSpecDevice(TypedDict):
    """A whole block device of the user (class C)."""

    erase_serial: str | None
    kind: Literal["device"]
    path: str
    precondition: Precondition
    precondition_round_ns: int
    protected: list[str]
    study: str | None


class TestbedSpecPlaces(TypedDict):
    """Several at once: one for the files, others for sets of files that name their places."""

    kind: Literal["places"]
    main: "TestbedSpec"
    others: list["PlaceSpec"]


TestbedSpec: TypeAlias = (
    TestbedSpecLoop | TestbedSpecDirectory | TestbedSpecDevice | TestbedSpecPlaces
)
"""Parameters of `open_testbed`: the kind, and what belongs to it."""


class PlaceSpec(TypedDict):
    """A place of its own: a private loop device, or a directory."""

    name: str
    stack: Stack | None
    testbed: TestbedSpec


class PossibleLevels(TypedDict):
    """Levels of a factor that a simulated stack can do."""

    factor: str
    is_without_files: bool
    levels: list[str] | None
    limit: str


class PredictionMiss(TypedDict):
    """An issue that the model would not have made as recorded."""

    at_ns: int
    chosen: int | None
    issue: int
    recorded: int


PredictionMethod: TypeAlias = Literal["forced", "followed"]
"""Way in which the model is kept on the recorded path."""


class Prediction(TypedDict):
    """Agreement of the choices."""

    explanation: Explanation | None
    first_unexplained: PredictionMiss | None
    issues: int
    method: PredictionMethod
    misses: list[PredictionMiss]
    predicted: int
    predicted_nearly: int
    tick_phase_ns: int | None
    unexplained: int


class SeekPoint(TypedDict):
    """One distance."""

    distance: int
    fitted_ms: float
    seek_ms: float


class SeekSweep(TypedDict):
    """The fitted curve: `a + b * sqrt(d)` below the boundary, `c + e * d` from it on."""

    boundary: int
    long: FittedLine
    mean_ms: float
    points: list[SeekPoint]
    rpm: float
    short: FittedLine


class SizePoint(TypedDict):
    """One size."""

    kib: int
    median_us: float
    residual_us: float


class SizeSweep(TypedDict):
    """One kind of access."""

    direction: str
    fixed_us: float
    pattern: str
    points: list[SizePoint]
    rate_mb_s: float | None


class ProbeFindings(TypedDict):
    """Findings of the probes."""

    depth: DepthSweep
    profile: str
    seek: SeekSweep | None
    sizes: list[SizeSweep]


Provenance: TypeAlias = Literal["code", "doc", "meas", "fit", "derived", "assume", "user"]
"""Source of a number."""


ProfileValue: TypeAlias = bool | float | str | list[float] | list[list[float]]
"""A parameter's value."""


class ProfileParameter(TypedDict):
    """One parameter."""

    source: str
    tag: Provenance
    unit: str
    value: ProfileValue


class Profile(TypedDict):
    """A device's description."""

    inner: NotRequired[str | None]
    kind: str
    name: str
    notes: str
    parameters: dict[str, ProfileParameter]
    software: NotRequired[str | None]
    title: str


class RecordingSoFar(TypedDict):
    """Amount recorded so far."""

    bytes: int
    events: int
    lost: int


class Progress(TypedDict):
    """Progress of a long request: `params` of the event `progress`."""

    begun: NotRequired[dict[str, FileBirth]]
    live: NotRequired[LiveSecond | None]
    message: str
    number: NotRequired[int | None]
    phase: str
    recording: NotRequired[RecordingSoFar | None]
    share: NotRequired[float | None]
    so_far: NotRequired[PhaseRecord | None]
    status: NotRequired[str | None]
    trial: NotRequired[str | None]


class SessionOfSlices(TypedDict):
    """Part of the session that a record keeps which was cut from it."""

    chosen_by: ChosenBy
    images: int
    number: int
    places: int
    settle_ns: int
    slice_ns: int
    slices_per_unit: int
    switch_cost_ns: int
    washout_ns: int


class Simulation(TypedDict):
    """Facts of a trial that only a simulation knows."""

    counters: dict[str, float]
    event_hash: str


Status: TypeAlias = Literal["ok", "failed", "interrupted", "dry_run"]
"""End of a trial."""


class TraceOfTrial(TypedDict):
    """The block trace of a trial."""

    bytes: int
    cpu_ns: int
    elapsed_ns: int
    events: int
    file: NotRequired[str | None]
    lost: dict[str, Any]
    problem: str | None
    sha256: NotRequired[str | None]
    vanished: list[str]


class Record(TypedDict):
    """Everything a trial left behind."""

    actions: list[Action]
    elapsed_ns: int
    engine: str
    error: str | None
    facts: dict[str, str]
    host_writes: NotRequired[HostWrites | None]
    images: NotRequired[list[PairsImageRecord]]
    knobs: dict[str, str]
    made: NotRequired[dict[str, FileMark]]
    pairs: NotRequired[PairsRecord | None]
    phases: list[PhaseRecord]
    session: NotRequired[SessionOfSlices | None]
    simulation: NotRequired[Simulation | None]
    stack: StackRecord | None
    started_at_unix_ns: int
    status: Status
    trace: NotRequired[TraceOfTrial | None]
    trial: str
    warnings: list[Warning]


class RecordSpec(TypedDict):
    """Parameters of `record_trace`."""

    backend: Backend
    buffer_bytes: int | None
    command: str | None
    devices: list[str]
    events: EventSet
    layers: list[KernelLayer]
    output: OutputFile
    pids: list[int]
    time_limit_ns: int | None


class RecordingResult(TypedDict):
    """Result of a recording."""

    bytes: int
    cpu_ns: int
    elapsed_ns: int
    events: int
    lost: dict[str, Any]
    problem: str | None
    vanished: list[str]


class Refusal(TypedDict):
    """Something that a target cannot do for a workload."""

    code: str
    hint: str
    phase: str
    reason: str
    tenant: str
    what: str


class ReplayFit(TypedDict):
    """Parameters of the device of a recording that the model does not give: where its angle
    stood, and what a request costs beyond the model (hand-over to the serving process, and its
    stalls).
    """

    flush_ns: float
    overhead_ns: float
    phase: float


class ReplayTwin(TypedDict):
    """Real and simulated, side by side."""

    fit: ReplayFit
    real: Figures
    simulated: Figures


class Request(TypedDict):
    """One line from the front end."""

    id: int
    method: str
    params: Any


class RestoreParams(TypedDict):
    """Parameters of `restore`."""

    run: str | None


class Restored(TypedDict):
    """Answer to `restore`."""

    alive: list[str]
    obsolete: list[str]
    problems: list[str]
    restored: list[str]


class RunAs(TypedDict):
    """The user that the measuring child becomes before it opens any file; only root can."""

    gid: int
    groups: list[int]
    uid: int


TunableUnit: TypeAlias = Literal["ms", "us", "ns", "requests", "sectors", "KiB", "", "0/1"]
"""Unit of a tunable, as sysfs counts it."""


class TunableInfo(TypedDict):
    """Facts about a tunable without a scheduler at hand."""

    about: str
    default: int
    max: int
    min: int
    name: str
    unit: TunableUnit


class SchedulerBook(TypedDict):
    """A simulated scheduler."""

    framework: str
    name: str
    tunables: list[TunableInfo]


class SeekRow(TypedDict):
    """Distances."""

    count: int
    is_mode_rough: bool
    mean_sectors: float
    mode_count: int
    mode_sectors: int
    p50_sectors: int
    p90_sectors: int
    sequential_share: float


class Sheet(TypedDict):
    """One sheet of a workbook: a table with a head line."""

    axes: list[str]
    columns: list[str]
    rows: list[list[str | list[float | None]]]
    title: str
    unit: str


class ShutDown(TypedDict):
    """Answer to `shutdown`."""

    problems: list[str]


class TargetLimit(TypedDict):
    """Reason why a target cannot do something, in words, and what to do instead."""

    code: str
    hint: str
    reason: str


class SimulatedLimits(TypedDict):
    """Abilities that no simulated stack has, and settings that change nothing on one."""

    alike: list[AlikeLevels]
    flags: list[FlagName]
    levels: list[PossibleLevels]
    limits: list[TargetLimit]


class SimulatedStack(TypedDict):
    """A stack, before anything runs on it."""

    capacity_bytes: int
    facts: dict[str, str]
    is_rotational: bool
    name: str
    provenance: dict[str, int]
    scheduler: str
    title: str


class TrialTrace(TypedDict):
    """A recording beside a trial."""

    events: EventSet
    layers: NotRequired[list[KernelLayer]]
    output: OutputFile


class SimulatedTrial(TypedDict):
    """The trial spec of the agent protocol, as far as a simulation has a use for it."""

    cache: NotRequired[Cache | None]
    knobs: dict[str, str]
    memory_limit_bytes: NotRequired[int | None]
    readings_every_ns: NotRequired[int | None]
    stack: NotRequired[Stack | None]
    trace: NotRequired[TrialTrace | None]
    trial: str
    workload: Workload


class SliceRow(TypedDict):
    """A slice as it is told."""

    begin_ns: int
    busy_share: float
    completed: int
    completed_bytes: int
    in_flight_max: int
    in_flight_mean: float
    length_ns: int
    outstanding_mean: float


class TraceCounts(TypedDict):
    """Counts of events, over all directions."""

    back_merges: TraceAmount
    completed: TraceAmount
    completed_of: list[TraceAmount]
    completed_unknown: int
    errors: int
    flushes: int
    flushes_completed: int
    flushes_issued: int
    forgotten: int
    front_merges: TraceAmount
    issued: TraceAmount
    joined: int
    plugs: int
    queued: list[TraceAmount]
    requeues: int
    splits: int
    timer_unplugs: int
    unplugs: int


class StagesOfDevice(TypedDict):
    """One device."""

    counts: TraceCounts
    device: str
    groups: list[GroupRow]
    idle_ns: int
    in_flight: DepthRow
    issue_seeks: SeekRow | None
    name: str | None
    outstanding: DepthRow
    outstanding_by_little: float
    plugged_ns: int
    queue_seeks: SeekRow | None
    sectors_per_completion: list[int | float] | None
    series: list[SliceRow]
    stages: list[StageRow]


class TraceCallRow(TypedDict):
    """One system call."""

    bytes: int
    count: int
    errors: int
    max_ns: int
    mean_ns: float
    name: str
    p50_ns: int
    p99_ns: int
    sum_ns: int


class TracePointRow(TypedDict):
    """Events of one name."""

    count: int
    name: str


class StagesReport(TypedDict):
    """The whole trace."""

    by: By
    calls: list[TraceCallRow]
    devices: list[StagesOfDevice]
    events: int
    events_left_out: int
    gaps: int
    packets: int
    points: list[TracePointRow]
    span_ns: int
    stages: list[StageRow]
    times_back: int


class TraceConvertedAnswer(TypedDict):
    """Part of every answer beside its content."""

    caveats: list[TraceCaveat]
    format: str
    left_out: int
    output: str
    written: int


class TraceFormat(TypedDict):
    """A format of traces."""

    about: str
    is_read: bool
    is_written: bool
    name: str


class TraceMeasuredAnswer(TypedDict):
    """Part of every answer beside its content."""

    caveats: list[TraceCaveat]
    format: str
    report: StagesReport
    text: str


class TracePlotAnswer(TypedDict):
    """Part of every answer beside its content."""

    begin_ns: int
    caveats: list[TraceCaveat]
    devices: list[DevicePlot]
    format: str
    span_ns: int
    step: str


class TraceRecorded(TypedDict):
    """Answer to `record_trace`."""

    devices: list[str]
    recorded: RecordingResult
    warnings: list[Warning]


class TraceShowOptions(TypedDict):
    """Options of `trace_show`."""

    format: NotRequired[str | None]
    has_programs: bool
    has_times: bool
    is_quiet: bool
    kinds: NotRequired[str | None]


class TraceShownAnswer(TypedDict):
    """Part of every answer beside its content."""

    caveats: list[TraceCaveat]
    events: int
    format: str


class TracesCompared(TypedDict):
    """Figures of two traces beside each other."""

    pairs: list[FigurePair]
    text: str
    traces: list[OnlyReadAnswer]


class TrialSpec(TypedDict):
    """Parameters of `run_trial`."""

    cache: Cache
    changes: NotRequired[list[KnobChange]]
    files: NotRequired[FileRules | None]
    interim: NotRequired[Interim | None]
    io_groups: NotRequired[list[IoGroup]]
    is_fresh_fs: bool
    knobs: dict[str, str]
    memory_limit_bytes: int | None
    pairs: NotRequired[PairsSpec | None]
    reserve_bytes: int
    run_as: NotRequired[RunAs | None]
    stack: Stack | None
    time_limit_ns: int
    trace: NotRequired[TrialTrace | None]
    trial: str
    waits: NotRequired[Waits | None]
    workload: Workload


class WatchSpec(TypedDict):
    """Parameters of `watch_trace`."""

    backend: Backend
    buffer_bytes: int | None
    devices: list[str]
    time_limit_ns: int | None


class YcsbClientResult(TypedDict):
    """A client."""

    ops: int


class YcsbTenantResult(TypedDict):
    """Clients of a run."""

    kv: NotRequired[KvRecord | None]
    workers: list[YcsbClientResult]


class YcsbPhaseResult(TypedDict):
    """A phase of a run."""

    tenants: list[YcsbTenantResult]


class YcsbRawSeries(TypedDict):
    """Single latencies of a series."""

    lines: str
    name: str
    percentiles_us: list[int]


class YcsbRowResult(TypedDict):
    """Results of a run, as far as a report needs them."""

    phases: list[YcsbPhaseResult]
    raw: NotRequired[list[YcsbRawSeries]]
