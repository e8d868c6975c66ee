"""Devices watched while they work: seconds as the agent tells them, and the last minute of them.

The agent, as root, sums up the events of the kernel second by second; nothing is written. Memory
is bounded: sixty seconds here, and what is not finished yet there.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from iolab.errors import TraceError
from iolab.frozen import frozen
from iolab.library.trace_recording import limit_ns_of, typed_buffer
from iolab.run.stop import pressed_by_signals
from iolab.stats.metrics.metric import format_ns
from iolab.testbed.agent import Agent
from iolab.testbed.command import agent_command
from iolab.units import format_bytes_rounded
from iolab.visible import visible_line
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import Backend, LiveLatency, LiveSecond, TraceRecorded, WatchSpec

MINUTE: Final = 60
"""Seconds that are kept."""
PROCESSES_SHOWN: Final = 8
_NAMES_MAX: Final = 4096
"""Processes of the last minute that are told apart."""
_FIRST_RANGE_NS: Final = 1_000

Stage: TypeAlias = Literal["device", "whole"]
"""Part of a request's time: in the device (D2C), or from the queue on (Q2C)."""
STAGE_NAMES: Final[dict[Stage, str]] = {"device": "D2C", "whole": "Q2C"}


@frozen
class LiveWords:
    """Devices to watch, as it is typed."""

    devices: tuple[str, ...]
    seconds: str | None = None
    """Time that it takes; without it until Ctrl-C."""
    backend: Backend = "auto"
    """Way of events to the recorder."""
    buffer: str = "8 MiB"
    """Kernel memory of each CPU."""


@frozen
class ProcessBytes:
    """Bytes that a process asked for."""

    pid: int
    name: str
    read_bytes: int
    write_bytes: int

    @property
    def sum_bytes(self) -> int:
        """Both."""
        return self.read_bytes + self.write_bytes


class LastMinute:
    """The last sixty seconds of devices."""

    def __init__(self) -> None:
        self.seconds = deque["LiveSecond"](maxlen=MINUTE)
        self.lost = 0
        """Events that were lost since the beginning."""
        self.elapsed_ns = 0

    def add(self, second: LiveSecond) -> None:
        """Take another second; the first of more than sixty is dropped."""
        self.seconds.append(second)
        self.lost += second["lost"]
        self.elapsed_ns += second["interval_ns"]

    @property
    def last(self) -> LiveSecond | None:
        """The latest second."""
        return self.seconds[-1] if self.seconds else None

    def processes(self) -> list[ProcessBytes]:
        """Processes of the minute, those with the most bytes first."""
        sums = dict[int, ProcessBytes]()
        for second in self.seconds:
            for row in second["processes"]:
                pid = row["pid"]
                known = sums.get(pid)
                if known is None and len(sums) >= _NAMES_MAX:
                    continue
                sums[pid] = ProcessBytes(
                    pid,
                    row["name"] or (known.name if known else ""),
                    row["read_bytes"] + (known.read_bytes if known else 0),
                    row["write_bytes"] + (known.write_bytes if known else 0),
                )
        return sorted(sums.values(), key=lambda row: (-row.sum_bytes, row.pid))

    def stage(self) -> Stage:
        """The device's own time, where the device tells it."""
        has_device = any(second["device"]["count"] for second in self.seconds)
        return "device" if has_device else "whole"

    def heat(self, stage: Stage) -> tuple[range, list[list[int]]]:
        """Ranges of latency that were met, and the counts of each second in them.

        Returns
        -------
        tuple : numbers of the ranges, from the shortest on; for each second its counts in these.
        """
        all_counts = [second[stage]["ranges"] for second in self.seconds]
        met = [place for counts in all_counts for place, count in enumerate(counts) if count]
        shown = range(min(met), max(met) + 1) if met else range(0)
        return shown, [[counts[place] for place in shown] for counts in all_counts]


def range_text(place: int) -> str:
    """Beginning of a range of latency: `128 us`; `0` of the first."""
    return format_ns(_FIRST_RANGE_NS << (place - 1)) if place else "0"


def watch_devices(
    asked: LiveWords, heed: Callable[[LiveSecond], None], note: Callable[[str], None]
) -> TraceRecorded:
    """Watch devices until the time is over, or Ctrl-C.

    Parameters
    ----------
    asked : devices and limits.
    heed : is given each second when it has ended.
    note : hears of what the agent has to say.

    Raises
    ------
    IolabError : it could not begin; says what can be used.
    TraceError : the devices went away.
    """
    spec: WatchSpec = {
        "devices": list(asked.devices),
        "backend": asked.backend,
        "buffer_bytes": typed_buffer(asked.buffer),
        "time_limit_ns": limit_ns_of(asked.seconds),
    }
    with (
        pressed_by_signals() as switch,
        Agent(agent_command(needs_root=True), stop=switch, tell=note) as agent,
    ):
        agent.hello(f"live-{uuid.uuid4().hex[:12]}")

        def listen(progress: object) -> None:
            assert isinstance(progress, dict)
            if progress.get("live"):
                heed(progress["live"])

        answer = agent.watch_trace(spec, listen)
    vanished = answer["recorded"]["vanished"]
    if vanished:
        raise TraceError(
            f"{', '.join(vanished)} went away while it was watched",
            "see `lsblk` for what is there, and `dmesg` for the reason",
        )
    return answer


def line_of(second: LiveSecond, stage: Stage) -> str:
    """Write a second in one line."""
    latency = second[stage]
    parts = [
        f"{second['number']:>5} s",
        f"read {rate_text(second, 'reads')}",
        f"write {rate_text(second, 'writes')}",
        f"{STAGE_NAMES[stage]} {latency_text(latency)}",
        f"depth {second['in_device' if stage == 'device' else 'in_queue']['mean']:.2f}",
    ]
    if second["processes"]:
        top = second["processes"][0]
        size = format_bytes_rounded(top["read_bytes"] + top["write_bytes"])
        parts.append(f"{process_text(top['name'], top['pid'])} {size}")
    return "  ".join([*parts, *troubles(second)])


def rate_text(second: LiveSecond, what: Literal["reads", "writes", "discards"]) -> str:
    """Write requests and bytes in a second: `1200/s 4.7 MB/s`, in the units that are shown."""
    per_s = 1e9 / second["interval_ns"]
    amount = second[what]
    return f"{amount['count'] * per_s:.0f}/s {format_bytes_rounded(amount['bytes'] * per_s)}/s"


def latency_text(latency: LiveLatency) -> str:
    """Write half, 99 of 100 and the longest."""
    if not latency["count"]:
        return "no request ended"
    times = (latency["p50_ns"], latency["p99_ns"], latency["max_ns"])
    return "p50 {} p99 {} max {}".format(*map(format_ns, times))


def process_text(name: str, pid: int) -> str:
    """Name and number, without what would be a command to a terminal."""
    return f"{visible_line(name) or '?'} ({pid})"


def troubles(second: LiveSecond) -> list[str]:
    """Events that make a second's figures wrong, and failures of the device."""
    found = list[str]()
    if second["errors"]:
        found.append(f"{counted(second['errors'], 'error')} of the device")
    if second["lost"]:
        found.append(f"{counted(second['lost'], 'event')} lost: rates are too low")
    if second["forgotten"]:
        found.append(f"{counted(second['forgotten'], 'request')} without a time")
    return found


def blocks_of(counts: Sequence[int], top: int, signs: str) -> str:
    """Draw counts as signs, by their logarithm; none is the first sign, `top` the last."""
    from math import log

    most = len(signs) - 1
    scale = log(top + 1) if top else 1.0
    places = [-(-log(count + 1) * most // scale) if count else 0 for count in counts]
    return "".join(signs[min(most, int(place))] for place in places)
