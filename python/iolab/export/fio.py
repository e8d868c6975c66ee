"""A treatment as a fio job file (fio 3.33; HOWTO of that version, behaviour tried).

One section per phase, or per stream of a phase. What fio cannot say, or says a little differently,
stands beside the option as a comment that begins with ``no equivalent:``; nothing is left out in
silence. Some options only undo what fio does of itself and iolab does not: advice to the kernel
(`fadvise_hint`), preallocation (`fallocate`), dropping the cache when a file is opened
(`invalidate`), and laying out the files of all sections before the first one starts
(`create_serialize`), which would leave nothing to allocate for a writing phase.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from iolab.export.environment import comment
from iolab.export.plain_names import one_line, plain_name, plain_trial_id
from iolab.export.treatments import Exported

if TYPE_CHECKING:
    from iolab.protocol import Phase, Tenant

ENGINES: Final[Mapping[str, str]] = {
    "sync": "sync",
    "psync": "psync",
    "vsync": "vsync",
    "pvsync": "pvsync",
    "preadv": "pvsync",
    "pvsync2": "pvsync2",
    "preadv2": "pvsync2",
    "mmap": "mmap",
    "libaio": "libaio",
    "posixaio": "posixaio",
    "splice": "splice",
    "io_uring": "io_uring",
    "io_uring_fixed": "io_uring",
    "io_uring_sqpoll": "io_uring",
    "io_uring_poll": "io_uring",
    "io_uring_fixed_sqpoll": "io_uring",
    "io_uring_fixed_poll": "io_uring",
    "io_uring_sqpoll_poll": "io_uring",
    "io_uring_fixed_sqpoll_poll": "io_uring",
    "stdio": "sync",
    "null": "null",
}
"""Our engines and those of fio that make the same system calls, or nearly (`_ENGINE_OPTIONS`)."""

_ENGINE_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "io_uring_fixed": ("fixedbufs", "registerfiles"),
    "io_uring_sqpoll": ("sqthread_poll",),
    "io_uring_poll": ("hipri",),
    "io_uring_fixed_sqpoll": ("fixedbufs", "registerfiles", "sqthread_poll"),
    "io_uring_fixed_poll": ("fixedbufs", "registerfiles", "hipri"),
    "io_uring_sqpoll_poll": ("sqthread_poll", "hipri"),
    "io_uring_fixed_sqpoll_poll": ("fixedbufs", "registerfiles", "sqthread_poll", "hipri"),
}
"""Options that make another engine of ours of fio's io_uring (fio --enghelp=io_uring)."""

_FLAGS: Final[Mapping[str, Mapping[str, str]]] = {
    "pvsync2": {"hipri": "hipri", "nowait": "nowait", "dontcache": "uncached"},
    "io_uring": {"hipri": "hipri", "nowait": "nowait", "dontcache": "uncached"},
}
"""Flags of transfers that engines of fio have, and their options (fio --enghelp)."""

_RANDOM: Final = ("permutation", "uniform")
_PRIORITY_CLASSES: Final = {"rt": 1, "be": 2, "idle": 3}  # ionice(1); fio: prioclass
_COMMAND_CHARACTERS_MAX: Final = 2000
_NONE: Final = "no equivalent: "
_HAS_OPTION: Final = {
    "advice",
    "content",
    "cpus",
    "engine",
    "is_unlinked",
    "nice",
    "preallocation",
    "range_sync",
    "write_life",
}
"""Refinements that fio has an option for."""
_FALLOCATE: Final = {"extended": "native", "reserved": "keep", "length": "truncate"}
_RANGE_PARTS: Final = (
    ("waits_before", "wait_before"),
    ("writes", "write"),
    ("waits_after", "wait_after"),
)
_UNKNOWN_FILE: Final = "FULL-PATH-OF-THIS-FILE"

Line: TypeAlias = str | tuple[str, object]
"""A comment, or an option with its value."""


def fio_job(item: Exported, directory: Path | None = None) -> str:
    """The job file of one treatment; of comments only if fio has nothing like its engine.

    Parameters
    ----------
    directory : where the file will lie, from the root on; None if nobody knows yet.

    Raises
    ------
    RefusedError : fio or a shell would take a part of a name for something else.
    """
    job = _UNKNOWN_FILE if directory is None else shlex.quote(str(directory / file_name(item)))
    lines = [comment(line) for line in _head(item, job)]
    phases = item.workload["phases"]
    for engine in sorted({_engine(item, one, own) for one in phases for own in one["tenants"]}):
        if engine not in ENGINES:
            text = f"{_NONE}fio has no engine that does what '{engine}' does; no job."
            return "\n".join([*lines, comment(text)]) + "\n"
    lines += ["", "[global]", *_written(_global(item))]
    for index, phase in enumerate(item.workload["phases"]):
        parts = [part for tenant in phase["tenants"] for part in _parts(phase, tenant)]
        for place, (name, tenant) in enumerate(parts):
            lines += ["", f"[{plain_name('phase or stream', name)}]"]
            lines += _written(_section(item, index, tenant, is_beside=place > 0))
    return "\n".join(lines) + "\n"


def _engine(item: Exported, phase: Phase, tenant: Tenant) -> str:
    own = tenant.get("manner", {}).get("engine")
    return own or phase.get("engine") or item.workload["engine"]


def _parts(phase: Phase, tenant: Tenant) -> Iterator[tuple[str, Tenant]]:
    """Sections of a tenant: one, or one per worker if their files are not numbered 0, 1, 2 ..."""
    name = phase["name"] if len(phase["tenants"]) == 1 else f"{phase['name']}.{tenant['name']}"
    # fio takes any section whose name begins so for that of all jobs.
    name = f"job-{name}" if name.startswith("global") else name
    first, step = tenant.get("file_first", 0), tenant.get("file_step", 1)
    if tenant["is_file_shared"] or (first, step) == (0, 1):
        yield name, tenant
        return
    for number in range(tenant["workers"]):
        own = tenant.copy()
        own["file_first"], own["file_step"], own["workers"] = first + number * step, 1, 1
        region = tenant.get("region")
        if region is not None:
            begins = region["from_bytes"] + number * region.get("step_bytes", 0)
            own["region"] = {**region, "from_bytes": begins}
        yield f"{name}.{number}", own


def _head(item: Exported, job: str) -> Iterator[str]:
    ids = ", ".join(trial_id for trial_id, _ in item.trials)
    yield f"{item.name}: the same as fio job. Trials: {ids}."
    yield "Run it in an empty directory on the file system to be measured:"
    yield f"  cd DIRECTORY && fio {job}"
    yield "Lines after a $ are for root and change the machine; they are never run by this file."
    yield from item.environment
    yield from _of_dialects(item)
    if item.memory_limit_bytes is not None:
        yield f"{_NONE}memory_limit; run fio in a control group, cache included:"
        yield f"$ systemd-run --scope -p MemoryMax={item.memory_limit_bytes} fio {job}"
    for note in item.midway:
        yield f"{_NONE}{note}"
    yield (
        f"{_NONE}between phases iolab waits for all workers, checks the cache and reads the "
        "counters of the devices."
    )


def file_name(item: Exported) -> str:
    """Name of its job file in an archive.

    Raises
    ------
    RefusedError : the trial has a name that no trial of iolab has; it could lead anywhere.
    """
    return f"trial-{plain_trial_id(item.trial_id)}.fio"


def _ioengine(name: str) -> Iterator[Line]:
    yield "ioengine", ENGINES[name]
    for option in _ENGINE_OPTIONS.get(name, ()):
        yield option, 1


def _of_dialects(item: Exported) -> Iterator[str]:
    """Wishes that only command lines of other programs have, and a job file cannot fulfil."""
    phases = item.workload["phases"]
    tenants = [tenant for phase in phases for tenant in phase["tenants"]]
    names = {name for tenant in tenants for name in tenant.get("manner", {})}
    refined = sorted(names - _HAS_OPTION)
    if refined:
        yield f"{_NONE}{', '.join(refined)}: the workers' ops are those of the pattern alone."
    if any(tenant.get("is_close_timed") for tenant in tenants):
        yield f"{_NONE}closing the file inside the time."
    if any(tenant["opening"] == "keep" for tenant in tenants):
        yield f"{_NONE}a first write into the file that is there, if there is one."
    if any(tenant.get("program") for tenant in tenants):
        yield f"{_NONE}a program of steps: a workload file says it (iolab run)."
    if any(tenant.get("kv") for tenant in tenants):
        yield f"{_NONE}clients of a key-value store."
    pauses_ns = {phase.get("pause_after_ns", 0) for phase in phases} - {0}
    if pauses_ns:
        seconds = max(pauses_ns) / 1e9
        yield f"{_NONE}a pause of {seconds:g} s after each phase."


def _global(item: Exported) -> Iterator[Line]:
    workload = item.workload
    yield from _ioengine(workload["engine"])
    if workload["workers_as"] == "threads":
        yield "thread", 1
    yield "group_reporting", 1
    yield from _content(workload["content"])
    verify = workload.get("verify", "none")
    if verify != "none":
        yield (
            f"{_NONE}verify {verify}: fio's verify= reads everything again after "
            "writing and has blocks of its own."
        )
    yield "fadvise_hint", 0
    yield "fallocate", "none"
    pinned = workload.get("pin_cpus")
    if pinned:
        yield "cpus_allowed", ",".join(map(str, pinned))
        yield "cpus_allowed_policy", "split"


def _content(content: object) -> Iterator[Line]:
    """Options for the data that are written."""
    if content == "zero":
        yield "zero_buffers", 1
    elif isinstance(content, dict):
        yield f"{_NONE}shares of the data that repeat ({content}): fio has others."
    else:
        yield "scramble_buffers", 1
        yield (
            f"{_NONE}iolab's random data with the first 8 bytes of each 4 KiB page new in every "
            "write; fio's is random and changed here and there."
        )


def _section(item: Exported, index: int, tenant: Tenant, *, is_beside: bool) -> Iterator[Line]:
    phase = item.workload["phases"][index]
    if is_beside:
        yield "new_group", 1  # For the report only: it runs beside the section before.
    elif index > 0:
        yield "stonewall", 1
    if phase.get("engine") or tenant.get("manner", {}).get("engine"):
        yield from _ioengine(_engine(item, phase, tenant))
    for ignored in phase.get("ignores", ()):
        yield f"Asked for, but this test has none, here as in iolab: {ignored}."
    yield from _files(tenant, is_first_phase=index == 0)
    yield from _refinements(tenant)
    yield from _shape(item, tenant)
    yield from _access(tenant)
    yield from _calls(_engine(item, phase, tenant), tenant)
    yield from _limits(tenant)
    yield from _flushes(tenant)
    yield from _cache(item, tenant)
    if phase["is_stonewalled"]:
        yield from _stonewalled(tenant)
    if tenant["primes_first_record"]:
        yield f"{_NONE}iolab reads record 0 once before the clock starts (as IOzone does)."


def _files(tenant: Tenant, *, is_first_phase: bool) -> Iterator[Line]:
    if tenant["is_file_shared"] or tenant.get("file_first", 0):
        yield "filename", file_names(tenant)[0]
    else:
        yield "filename_format", f"{plain_name('file', tenant['file'])}.$jobnum"
    yield "numjobs", tenant["workers"]
    if tenant["opening"] == "create":
        yield f"A new, empty file: remove {tenant['file']}* of an earlier run first."
        if tenant.get("is_preallocated"):
            how = tenant.get("manner", {}).get("preallocation", "extended")
            yield "fallocate", _FALLOCATE[how]
        else:
            yield "create_on_open", 1
    elif tenant["opening"] == "existing":
        yield "The file is that of the phase before."
        yield "allow_file_create", 0
    elif _writes(tenant):
        yield "overwrite", 1
    if not is_first_phase:
        yield "create_serialize", 0


def _shape(item: Exported, tenant: Tenant) -> Iterator[Line]:
    io_size, kind = tenant["io_size_bytes"], tenant["pattern"]["kind"]
    records = _worked_bytes(tenant) // io_size
    word = {"read": "read", "write": "write", "mixed": "rw"}[tenant["direction"]["kind"]]
    if kind in _RANDOM:
        yield "rw", f"rand{word}"
    else:
        yield "rw", word + _skip(tenant, records)
    yield "bs", io_size
    yield from _region(tenant)
    if _ends_at_the_end(tenant, records):
        # A pass that ends at the very end of the region would be fio's last one.
        yield "size", (records - 1) * io_size
        yield "io_size", records * io_size
    else:
        yield "size", records * io_size
    yield from _pattern_notes(item, tenant, records)
    if tenant["direction"]["kind"] == "mixed":
        yield from _mix(tenant)


def _refinements(tenant: Tenant) -> Iterator[Line]:
    """Options for what `_HAS_OPTION` names, but for ways of allocating and parts of flushes."""
    manner = tenant.get("manner", {})
    content = manner.get("content")
    if content is not None:
        if content != "zero":
            yield "zero_buffers", 0  # Of all jobs, perhaps.
        yield from _content(content)
    if manner.get("is_unlinked"):
        yield "unlink", 1
    advice = manner.get("advice")
    if advice in ("random", "sequential"):
        yield "fadvise_hint", advice
    elif advice:
        yield f"{_NONE}advice {advice}: fio knows random and sequential."
    life = manner.get("write_life")
    if life:
        yield "write_hint", life
    nice = manner.get("nice", 0)
    if nice:
        yield "nice", nice
    cpus = manner.get("cpus", {})
    numbers = cpus.get("numbers", ())
    if numbers:
        yield "cpus_allowed", ",".join(map(str, numbers))
        if cpus.get("is_split"):
            yield "cpus_allowed_policy", "split"


def _worked_bytes(tenant: Tenant) -> int:
    """Bytes of the part of the file that a worker works on."""
    region = tenant.get("region")
    return tenant["file_bytes"] if region is None else region["bytes"]


def _region(tenant: Tenant) -> Iterator[Line]:
    """Begin of each worker's part of the file; its length is the size."""
    region = tenant.get("region")
    if region is None:
        return
    if region["from_bytes"]:
        yield "offset", region["from_bytes"]
    step = region.get("step_bytes", 0)
    if step:
        yield "offset_increment", step
    end = region["from_bytes"] + step * (tenant["workers"] - 1) + region["bytes"]
    if end < tenant["file_bytes"] and tenant["opening"] != "existing":
        rest = tenant["file_bytes"] - end
        yield f"{_NONE}{rest} bytes of the file behind what is worked on; fio's file ends there."


def _skip(tenant: Tenant, records: int) -> str:
    """Bytes that fio adds to the end of one op to find the start of the next one."""
    io_size, pattern = tenant["io_size_bytes"], tenant["pattern"]
    if pattern["kind"] == "reverse" and records > 1:
        return f":-{2 * io_size}"
    if pattern["kind"] == "same":
        return f":-{io_size}"
    if _stride(tenant) > 1:
        return f":{(_stride(tenant) - 1) * io_size}"
    return ""


def _stride(tenant: Tenant) -> int:
    """Records from one op to the next; 1 where the pattern has no stride."""
    pattern = tenant["pattern"]
    return pattern["stride"] if pattern["kind"] == "stride" else 1


def _pattern_notes(item: Exported, tenant: Tenant, records: int) -> Iterator[Line]:
    kind = tenant["pattern"]["kind"]
    if kind == "permutation":
        yield "norandommap", 0
        yield "randrepeat", 1
        yield f"{_NONE}IOzone's order of the records; each once, as here, in fio's own order."
    elif kind == "uniform":
        yield "norandommap", 1
        yield "randrepeat", 0
        yield "randseed", item.trials[0][1]
        others = ", ".join(f"{trial_id} {seed}" for trial_id, seed in item.trials[1:])
        yield f"Seeds of the other trials: {others or 'none'}."
        yield f"{_NONE}the same offsets: another generator makes other numbers of this seed."
    elif kind == "reverse":
        yield (
            f"{_NONE}fio begins at record 0, goes on with record {max(records - 2, 0)} and never "
            f"reads record {records - 1}; iolab goes from {records - 1} down to 0."
        )
    elif kind == "stride" and records > _stride(tenant):
        yield (
            f"{_NONE}each pass of iolab begins one record later (IOzone's rule); fio begins every "
            "pass at record 0."
        )


def _ends_at_the_end(tenant: Tenant, records: int) -> bool:
    """Tell whether a strided pass reaches the last record, which IOzone's rule never touches."""
    stride = _stride(tenant)
    is_counted = tenant["limit"]["kind"] == "once" and tenant["opening"] != "create"
    return 1 < stride < records and (records - 1) % stride == 0 and is_counted


def _mix(tenant: Tenant) -> Iterator[Line]:
    share = _read_share(tenant)
    percent = round(share * 100)
    yield "rwmixread", percent
    if abs(share * 100 - percent) > 1e-9:
        yield f"{_NONE}{share * 100:.6g} % of reads; fio takes whole percent."
    if tenant["pattern"]["kind"] not in _RANDOM:
        yield f"{_NONE}one position for reads and writes; fio keeps one for each."


def _read_share(tenant: Tenant) -> float:
    """Share of the ops that read."""
    direction = tenant["direction"]
    if direction["kind"] == "mixed":
        return direction["read_share"]
    return 1.0 if direction["kind"] == "read" else 0.0


def _access(tenant: Tenant) -> Iterator[Line]:
    yield "direct", int(tenant["access"] == "direct")
    if tenant["durability"] != "none" and _writes(tenant):
        yield "sync", tenant["durability"]
    yield "iodepth", tenant["depth"]
    priority = tenant.get("priority")
    if priority is not None:
        yield "prioclass", _PRIORITY_CLASSES[priority["class"]]
        if priority["class"] != "idle":
            yield "prio", priority["level"]


def _calls(engine: str, tenant: Tenant) -> Iterator[Line]:
    """Special properties of each call."""
    if engine == "stdio":
        size = tenant.get("stream_buffer_bytes", 0)
        is_same = size == tenant["io_size_bytes"]
        yield f"{_NONE}a stream of the C library; these are calls without one" + (
            ", which the library makes too with a buffer of one record."
            if is_same
            else ", as many as operations; the library makes one per buffer."
        )
    vectors, lock = tenant.get("vectors", 0), tenant.get("lock", "none")
    if vectors > 1:
        yield f"{_NONE}{vectors} buffers in each call; fio's calls have one."
    if lock != "none":
        yield f"{_NONE}fcntl locks ({lock}); fio's lockfile= knows its own jobs only."
    for flag in tenant.get("flags", ()):
        if flag in _FLAGS.get(engine, {}):
            yield _FLAGS[engine][flag], 1
        elif _writes(tenant) and flag in ("sync", "dsync") and tenant["durability"] == "none":
            yield "sync", flag
            yield f"{_NONE}the flag {flag} of each write; the file opened so promises the same."
        else:
            yield f"{_NONE}the flag {flag} of each transfer."


def _limits(tenant: Tenant) -> Iterator[Line]:
    limit = tenant["limit"]
    begins_ns = tenant.get("begins_ns", 0)
    if begins_ns:
        yield "startdelay", _duration(begins_ns)
    if limit["kind"] == "time":
        yield "time_based", 1
        yield "runtime", _duration(limit["duration_ns"])
        if limit["duration_ns"] % 1000:
            yield f"{_NONE}{limit['duration_ns']} ns; fio counts in microseconds."
    elif limit["kind"] == "ops":
        yield "io_size", limit["ops"] * tenant["io_size_bytes"]
        within_ns = limit.get("within_ns")
        if within_ns:
            yield "runtime", _duration(within_ns)
    rate = tenant.get("rate_ops_per_s")
    if rate is not None:
        yield from _rate(tenant, rate)
    if tenant["think_ns"]:
        yield "thinktime", f"{max(1, round(tenant['think_ns'] / 1000))}us"
        if tenant["think_ns"] % 1000:
            yield f"{_NONE}{tenant['think_ns']} ns of thought; fio counts in microseconds."


def _rate(tenant: Tenant, rate: float) -> Iterator[Line]:
    share = _read_share(tenant)
    reads, writes = max(1, round(rate * share)), max(1, round(rate * (1 - share)))
    if share == 1.0:
        yield "rate_iops", reads
    elif share == 0.0:
        yield "rate_iops", writes
    else:
        yield "rate_iops", f"{reads},{writes}"
        yield f"{_NONE}one rate for reads and writes together; fio limits each of them."
    if rate != round(rate):
        yield f"{_NONE}{rate:g} ops/s; fio takes whole numbers."
    yield (
        f"{_NONE}response times from the moment an op was due; fio's latencies begin when it "
        "is issued."
    )


def _duration(duration_ns: int) -> str:
    for unit, length in (("s", 10**9), ("ms", 10**6)):
        if duration_ns % length == 0:
            return f"{duration_ns // length}{unit}"
    return f"{max(1, round(duration_ns / 1000))}us"


def _flushes(tenant: Tenant) -> Iterator[Line]:
    fsync = tenant["fsync"]
    kind = fsync["kind"]
    if not _writes(tenant):
        return
    if fsync["kind"] == "every":
        yield from _flushes_between(fsync["ops"], tenant)
    elif kind == "timed":
        yield "end_fsync", 1
    elif kind == "after":
        yield "The fsync after the clock has stopped (fio says so before its JSON):"
        command = " ".join(["sync", *file_names(tenant)])
        if len(command) > _COMMAND_CHARACTERS_MAX:
            command = "sync"
            yield f"{_NONE}not of these files alone, whose names make too long a line."
        yield "exec_postrun", command


def _flushes_between(every: int, tenant: Tenant) -> Iterator[Line]:
    """After so many writes; on a mapped file fio's fsync is an msync."""
    flush = tenant.get("flush", "fsync")
    if flush == "sync_file_range":
        how = tenant.get("manner", {}).get("range_sync", {})
        parts = [part for key, part in _RANGE_PARTS if how.get(key, True)]
        yield "sync_file_range", f"{','.join(parts)}:{every}"
    elif flush == "fdatasync":
        yield "fdatasync", every
    else:
        yield "fsync", every
    if flush == "msync_async":
        yield f"{_NONE}msync without waiting; fio waits."
    elif flush == "msync":
        yield f"{_NONE}msync of what was written since the last one; fio's is of all it mapped."


def file_names(tenant: Tenant) -> list[str]:
    """Files of all workers of a tenant.

    Raises
    ------
    RefusedError : fio or a shell would take a part of a name for something else.
    """
    file = plain_name("file", tenant["file"])
    if tenant["is_file_shared"]:
        return [file]
    first, step = tenant.get("file_first", 0), tenant.get("file_step", 1)
    return [f"{file}.{first + i * step}" for i in range(tenant["workers"])]


def _cache(item: Exported, tenant: Tenant) -> Iterator[Line]:
    reads = tenant["direction"]["kind"] != "write"
    is_cold = item.cache == "cold" and reads
    yield "invalidate", int(is_cold)
    if tenant["access"] == "direct" or not reads:
        return
    if is_cold:
        yield (
            f"{_NONE}iolab empties the page cache and checks that it is empty; fio asks the kernel "
            "to forget this file, which keeps dirty pages. To be as cold, run the sections one by "
            "one with --section=NAME, and before each that reads:"
        )
        yield "$ sync; echo 3 > /proc/sys/vm/drop_caches"
    elif item.cache == "warm":
        yield "pre_read", 1
        yield f"{_NONE}iolab checks that the whole file is in the page cache."


def _stonewalled(tenant: Tenant) -> Iterator[Line]:
    if tenant["opening"] != "create":
        yield "exitall", 1
        yield "exit_what", "stonewall"
        yield f"{_NONE}iolab does not count the op in flight when the first worker is done."
    else:
        yield (
            f"{_NONE}iolab stops the clock when the first worker is done, the others finish their "
            "files untimed; fio measures all of them to the end."
        )


def _writes(tenant: Tenant) -> bool:
    return tenant["direction"]["kind"] != "read"


def _written(lines: Iterator[Line]) -> Iterator[str]:
    for line in lines:
        yield comment(line) if isinstance(line, str) else f"{line[0]}={one_line(line[1])}"
