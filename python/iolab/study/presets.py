"""Workloads in which streams compete, under names: what schedulers are judged by.

Each preset is a question that many have asked of a disk under load (does an application still
start, does a film still play, does everybody get the same?). A preset is a plain mixed workload
with a metric that answers the question; `iolab workloads NAME` prints it as a study file.

The situations are those of public scheduler benchmarks (P. Valente and A. Avanzini, *Evolution of
the BFQ storage-I/O scheduler*, 2015, section 6; the S suite by the same authors); the streams are
our own. Left out: recorded starts of real applications, which a replay would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iolab.frozen import frozen, replace
from iolab.study.model import MixedWorkload, Priority, Stream
from iolab.wording import nearest

_SMALL: Final = 4 << 10
_FRAME: Final = 256 << 10
_BULK: Final = 256 << 10
_MS: Final = 1_000_000
_FRAMES_PER_S: Final = 25
_SHORT_OPS_PER_S: Final = 50
"""Operations of a start-up per second of its half: alone, a disk with 8 ms per read needs 40 %."""


@frozen
class Preset:
    """A named contention workload."""

    name: str
    about: str
    """One line."""
    question: str
    """Question that its metric answers."""
    metric: str
    metric_of: str
    streams: Callable[[int, int], tuple[Stream, ...]]
    """Its streams, from duration in ns and bytes per file."""


def _reader(name: str, file_bytes: int, **more: object) -> Stream:
    """A reader of small records at random, one at a time; `more` are other fields of a stream."""
    stream = Stream(name, 1.0, "uniform", _SMALL, depth=1, workers=1, file_bytes=file_bytes)
    return replace(stream, **more)


def _writer(name: str, file_bytes: int, **more: object) -> Stream:
    """A writer of large records from the front, eight at a time."""
    stream = Stream(name, 0.0, "sequential", _BULK, depth=8, workers=1, file_bytes=file_bytes)
    return replace(stream, **more)


def _start_up(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    # BFQ takes all who have just begun for interactive, bulk writers too, for some ten seconds.
    begins = duration_ns // 2
    ops = max(10, (duration_ns - begins) * _SHORT_OPS_PER_S // 1_000_000_000)
    return (
        _reader("start-up", file_bytes, begins_ns=begins, ops=ops, think_ns=_MS),
        _writer("writers", file_bytes, workers=2),
    )


def _video(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    film = _reader(
        "video",
        file_bytes,
        pattern="sequential",
        io_size_bytes=_FRAME,
        rate_ops_per_s=float(_FRAMES_PER_S),
    )
    return (
        film,
        _writer("writers", file_bytes, pattern="uniform", io_size_bytes=_SMALL, workers=2),
    )


def _equal(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    return (_reader("readers", file_bytes, pattern="sequential", io_size_bytes=_BULK, workers=4),)


def _weighted(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    levels = (("high", 0), ("middle", 4), ("low", 7))
    return tuple(
        _reader(
            name,
            file_bytes,
            pattern="sequential",
            io_size_bytes=_BULK,
            priority=Priority("be", level),
        )
        for name, level in levels
    )


def _fsyncs(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    interactive = Stream(
        name="interactive",
        read_share=0.0,
        pattern="uniform",
        io_size_bytes=_SMALL,
        depth=1,
        workers=1,
        file_bytes=file_bytes,
        fsync_every=1,
        think_ns=10 * _MS,
    )
    return (interactive, _writer("bulk", file_bytes))


def _latency(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    bulk = _writer("bulk", file_bytes, io_size_bytes=1 << 20, depth=32)
    return (_reader("reader", file_bytes), bulk)


def _iops(duration_ns: int, file_bytes: int) -> tuple[Stream, ...]:
    del duration_ns
    return (_reader("readers", file_bytes, depth=32, workers=4),)


PRESETS: Final[tuple[Preset, ...]] = (
    Preset(
        "start-up",
        "an application starts while two writers stream",
        "How long does a burst of small random reads, with pauses between, take beside writers?",
        "completion_ns",
        "start-up",
        _start_up,
    ),
    Preset(
        "video",
        "a film is read at a fixed rate while two writers write at random",
        "Which share of the frames comes within the time of one frame?",
        "on_time_share",
        "video",
        _video,
    ),
    Preset(
        "equal-readers",
        "four equal sequential readers",
        "Does each get the same share? (Jain's index: 1 is equal, 1/4 is one takes all.)",
        "fairness_jain",
        "readers",
        _equal,
    ),
    Preset(
        "weighted-readers",
        "three sequential readers of different I/O priority",
        "Does each get what its priority promises? (Jain's index of rate over promise.)",
        "fairness_jain_shares",
        "all",
        _weighted,
    ),
    Preset(
        "fsync",
        "small writes with fsync, one every 10 ms, beside a bulk writer",
        "How long does the fsync of a small write take, the slowest hundredth of them?",
        "flush_ns_p99",
        "interactive",
        _fsyncs,
    ),
    Preset(
        "latency",
        "small random reads, one at a time, beside a bulk writer",
        "How long does the slowest hundredth of the reads take?",
        "latency_ns_p99",
        "reader",
        _latency,
    ),
    Preset(
        "iops",
        "as many small random reads as possible: four readers, 32 in flight each",
        "How many operations does the block layer finish?",
        "throughput_ops_per_s",
        "readers",
        _iops,
    ),
)


def find_preset(value: object) -> Preset:
    """Preset of a name.

    Raises
    ------
    ValueError : there is none; names the nearest.
    """
    names = [preset.name for preset in PRESETS]
    for preset in PRESETS:
        if preset.name == value:
            return preset
    raise ValueError(
        f"'{value}' is not a contention workload{nearest(str(value), names)}: presets are "
        + ", ".join(names)
    )


def preset_workload(preset: Preset, duration_ns: int, file_bytes: int) -> MixedWorkload:
    """Streams of a preset as a workload."""
    return MixedWorkload(preset.name, duration_ns, preset.streams(duration_ns, file_bytes))
