"""Results of a row as the renderers of command lines take them; times in ns."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class WorkerResult(TypedDict):
    """Result of one child in a phase."""

    child: int
    ops: int
    bytes: int
    elapsed_ns: int
    call_ns: int


class PhaseResult(TypedDict):
    """One phase of a row."""

    name: str
    elapsed_ns: int
    parent_ns: int | None
    cpu_ns: int
    workers: list[WorkerResult]
    latency_ns_max: NotRequired[int]
    """The longest call, where the dialect shows it."""


class RowResult(TypedDict):
    """One measured row of a command line."""

    index: int
    phases: list[PhaseResult]
    is_failed: bool


class SideFiles(TypedDict, total=False):
    """Files beside the table that IOzone was asked for."""

    has_histograms: bool
    has_latencies: bool
    has_stamps: bool
    limits_ns: list[int]
    """Upper ends of the classes of a histogram."""
    logged: list[str]
    """Tests whose single operations are logged."""


class WorkbookSheet(TypedDict):
    """A report of a spreadsheet: a table with two axes."""

    title: str
    unit: str
    axes: tuple[str, str]
    """Of the columns, and of the rows."""
    columns: list[str]
    rows: list[tuple[str, list[float | None]]]
