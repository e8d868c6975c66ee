"""Counters of the devices over time, as the trials of a stored study have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.frozen import frozen
from iolab.library.stored import find_database, is_archive, unpacked
from iolab.store.db import Store

if TYPE_CHECKING:
    from iolab.protocol import Record


@frozen
class DiskSeries:
    """Readings of one device's counters during one operation of one trial."""

    trial: str
    treatment: str
    """Levels of the trial, as ``scheduler=none``."""
    operation: str
    device: str
    """Name in the kernel."""
    at_ns: tuple[int, ...]
    """Times of the readings, from the first on."""
    counters: tuple[tuple[int, ...], ...]
    """One reading each: counted since the first, in the order of the kernel's ``stat`` file (Linux
    Documentation/block/stat.rst); the ninth, requests in flight, as it was."""


def disk_series(path: str | Path, *, trial: str | None = None) -> Iterator[DiskSeries]:
    """Readings of all finished trials of a stored study, or of one of them, in order.

    Parameters
    ----------
    path : a results directory, its ``study.db``, or an archive.
    trial : name of the one that is wanted, such as ``t0001``.

    Yields
    ------
    DiskSeries : one per trial, operation and device.

    Raises
    ------
    StoreError : there is no study that can be read.
    IolabError : nothing is there.
    """
    place = Path(path)
    with (
        unpacked(place) if is_archive(place) else nullcontext((find_database(place), None)) as it,
        Store.open_reader(it[0]) as store,
    ):
        levels = {row.trial_id: row.levels for row in store.load_data().trials}
        for trial_id, record in store.contents.records():
            if trial in (None, trial_id):
                told = ", ".join(f"{name}={level}" for name, level in levels[trial_id].items())
                yield from _of_record(trial_id, told, record)


def _of_record(trial_id: str, treatment: str, record: Record) -> Iterator[DiskSeries]:
    for phase in record["phases"]:
        for device in phase["devices"]:
            series = device.get("series")
            if series:
                yield DiskSeries(
                    trial_id,
                    treatment,
                    phase["name"],
                    device["name"],
                    tuple(series["at_ns"]),
                    tuple(tuple(row) for row in series["counters"]),
                )
