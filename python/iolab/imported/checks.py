"""Statements of a table about itself, checked: printed means, and Little's law in iostat's
columns.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Final

from iolab.frozen import frozen
from iolab.imported.values import Levels, Reading, Value
from iolab.stats.consistency import Check, check_mean, check_product
from iolab.store.rows import Caveat

_SHOWN: Final = 6
_QUEUES: Final = ("actv", "aqu-sz", "avgqu-sz")
_TIMES: Final = ("svc_t", "asvc_t", "await")
_RATES: Final = ("r/s", "w/s")


@frozen
class Checked:
    """The outcome of all checks."""

    caveats: tuple[Caveat, ...]
    means_checked: int
    means_wrong: int
    means_unknown: int
    """Printed means of which some run is missing."""

    @property
    def text(self) -> str:
        """The printed means in one line; empty if there are none."""
        total = self.means_checked + self.means_unknown
        if not total:
            return ""
        said = f"{self.means_checked - self.means_wrong} of {total} agree with their runs"
        if self.means_wrong:
            said += f", {self.means_wrong} do not"
        if self.means_unknown:
            said += f", {self.means_unknown} cannot be checked (a run is missing)"
        return said


def check_reading(reading: Reading) -> Checked:
    """Check everything that can be checked."""
    wrong, checked, unknown = _means(reading)
    caveats = [*_mean_caveat(wrong), *_queue_caveats(reading)]
    return Checked(tuple(caveats), checked, len(wrong), unknown)


def _means(reading: Reading) -> tuple[list[tuple[Value, Check]], int, int]:
    runs: dict[object, list[Value]] = defaultdict(list)
    for value in reading.runs:
        runs[value.place, value.unit].append(value)
    fullest = max(map(len, runs.values()), default=0)
    wrong: list[tuple[Value, Check]] = []
    checked = unknown = 0
    for value in reading.values:
        if value.kind != "mean":
            continue
        known = runs.get((value.place, value.unit), [])
        if len(known) < fullest or not known:
            unknown += 1
            continue
        checked += 1
        check = check_mean(value.text, value.printed, [run.printed for run in known])
        if not check.is_consistent:
            wrong.append((value, check))
    return wrong, checked, unknown


def _mean_caveat(wrong: list[tuple[Value, Check]]) -> list[Caveat]:
    if not wrong:
        return []
    said = [
        f"line {value.line}, {value.text}: printed {value.printed} {value.unit}, its runs give"
        f" {check.derived:.8g}"
        for value, check in wrong[:_SHOWN]
    ]
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    count = "1 printed mean does" if len(wrong) == 1 else f"{len(wrong)} printed means do"
    return [
        Caveat(
            "printed_mean",
            f"{count} not agree with the runs beside it: {'; '.join(said)}{more}.",
            "The verdicts rest on the runs; find out which of the numbers is the misprint.",
        )
    ]


def _queue_caveats(reading: Reading) -> list[Caveat]:
    """Compare each device's mean queue with rate x time in it (Little 1961)."""
    rows: dict[tuple[str, Levels, str, int], dict[str, Value]] = defaultdict(dict)
    for value in reading.runs:
        device, _, column = value.operation.rpartition(" ")
        rows[value.workload, value.levels, device, value.run][column] = value
    found: list[Caveat] = []
    for (_, levels, device, _), columns in rows.items():
        queue = next((columns[name] for name in _QUEUES if name in columns), None)
        time = next((columns[name] for name in _TIMES if name in columns), None)
        rates = [columns[name] for name in _RATES if name in columns]
        if queue is None or time is None or not rates or time.unit not in ("ms", "us", "s"):
            continue
        rate = sum((Decimal(value.printed) for value in rates), Decimal(0))
        scale = {"s": "1", "ms": "0.001", "us": "0.000001"}[time.unit]
        name = ", ".join(part for part in (f"queue of {device}", *(v for _, v in levels)) if part)
        check = check_product(name, queue.printed, (str(rate), time.printed), scale)
        if not check.is_consistent:
            found.append(_queue_caveat(check, queue, time, rate))
    return found


def _queue_caveat(check: Check, queue: Value, time: Value, rate: Decimal) -> Caveat:
    apart = abs(check.printed / check.derived - 1) if check.derived else Decimal(1)
    return Caveat(
        "littles_law",
        f"{check.subject}: {queue.operation.rpartition(' ')[2]} is {check.printed} (line"
        f" {queue.line}), but {rate} requests/s x {time.printed} {time.unit} are"
        f" {check.derived:.3g}: {apart * 100:.0f} % apart, where rounding allows"
        f" {check.tolerance:.2g}.",
        f"Take the queue, its rate and its time as good to about {apart * 100:.0f} %.",
    )
