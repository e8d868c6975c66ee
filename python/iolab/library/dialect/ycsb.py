"""Needs of YCSB's command line: lines about the progress, logs of single operations and histograms.

The clients log single operations as lines of text, one file per client
(`crates/iolab-drive/src/kv/log.rs`): ``SERIES,ms,us`` of latencies, or what the printing store
would do. Histogram logs are made by the compiled half (`crates/iolab-dialect/src/ycsb/hdr_log.rs`).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, cast

from iolab.errors import IolabError
from iolab.library.dialect.files import check_all_written, check_written
from iolab.run.observer import Observer
from iolab.store.users_files import write_file

if TYPE_CHECKING:
    from iolab.library.dialect.plan import DialectCore, DialectPlan
    from iolab.protocol import PhaseRecord, Progress, Record, ShownByYcsb, Workload

NAME: Final = "ycsb"
_FOLDER: Final = "operations"
_PERCENTILES: Final = (1, 5, 50, 90, 95, 99, 99.9, 99.99)
_LOGGED_SERIES: Final = (
    *("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE", "VERIFY", "CLEANUP"),
    *("READ-FAILED", "UPDATE-FAILED", "INSERT-FAILED", "SCAN-FAILED"),
)
"""Series that may have a log; those of both intervals have two."""


class RawLatencies(TypedDict):
    """Single latencies of a series, as the renderer takes them."""

    name: str
    lines: str
    percentiles_us: list[int]


def _shown(plan: DialectPlan) -> ShownByYcsb | None:
    return cast("ShownByYcsb", plan.values["show"]) if plan.dialect == NAME else None


def files_of(plan: DialectPlan) -> list[Path]:
    """Files beside the report that the command line writes; refused before anything is measured.

    Raises
    ------
    IolabError : one cannot be written.
    RefusedError : a file is there that iolab did not make.
    """
    show = _shown(plan)
    if show is None:
        return []
    named = list[str]()
    if show["raw_file"]:
        check_written(show["raw_file"], plan.allowed, "measurement.raw.output_file")
        named.append(show["raw_file"])
    if show["hdr_path"] is not None:
        places = [f"{show['hdr_path']}{name}.hdr" for name in _LOGGED_SERIES]
        check_all_written(places, plan.allowed, "hdrhistogram.output.path")
        named += places
    return [Path(name) for name in named]


def show_banner(plan: DialectPlan, console: Observer) -> None:
    """Print the lines with which YCSB begins, for people."""
    show = _shown(plan)
    for line in show["banner"] if show is not None else ():
        console.note(line)


def show_status(plan: DialectPlan, params: Progress, console: Observer) -> None:
    """Print a line about the progress, with the time of day before it."""
    line, show = params.get("status"), _shown(plan)
    if line is None or show is None:
        return
    now = datetime.now().astimezone()
    told = f"{show['label']}{now:%Y-%m-%d %H:%M:%S}:{now.microsecond // 1000:03} {line}"
    console.note(told)
    if show["has_status_in_results"]:
        console.result(told)


@contextmanager
def log_folder(plan: DialectPlan, out_dir: Path) -> Generator[Path | None]:
    """A directory for the logs of the clients, if any are wanted; removed in the end."""
    show = _shown(plan)
    if show is None or not show["is_logged"]:
        yield None
        return
    folder = out_dir.resolve() / _FOLDER
    folder.mkdir()
    try:
        yield folder
    finally:
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def logged(workload: Workload, folder: Path | None) -> Workload:
    """The workload with logs in a directory."""
    if folder is None:
        return workload
    phases = [
        {
            **phase,
            "tenants": [
                {**tenant, "manner": {**tenant.get("manner", {}), "op_log": str(folder)}}
                for tenant in phase["tenants"]
            ],
        }
        for phase in workload["phases"]
    ]
    return cast("Workload", {**workload, "phases": phases})


def show_operations(plan: DialectPlan, folder: Path | None, console: Observer) -> None:
    """Print what the printing store would have done, client by client."""
    show = _shown(plan)
    if show is None or folder is None or not show["is_printed"]:
        return
    for path in _logs(folder):
        console.result("\n".join(show["properties"]))
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                console.result(line.removesuffix("\n"))


def raw_series(plan: DialectPlan, folder: Path | None) -> dict[str, list[RawLatencies]]:
    """Single latencies as the renderer takes them; written to their file, if there is one.

    Raises
    ------
    IolabError : the file cannot be written; results are stored all the same.
    """
    show = _shown(plan)
    if show is None or folder is None or show["is_printed"]:
        return {}
    lines = dict[str, list[str]]()
    for path in _logs(folder):
        with path.open(encoding="utf-8") as file:
            for line in file:
                lines.setdefault(line.partition(",")[0], []).append(line)
    found = list[RawLatencies]()
    in_file = show["raw_file"]
    for name in (name for name in _LOGGED_SERIES if name in lines):
        latencies = sorted(int(line.rpartition(",")[2]) for line in lines[name])
        text = "" if in_file else "".join(lines[name])
        found.append({"name": name, "lines": text, "percentiles_us": [*_percentiles(latencies)]})
    if in_file:
        text = "".join(
            f"{name} latency raw data: op, timestamp(ms), latency(us)\n{''.join(lines[name])}"
            for name in _LOGGED_SERIES
            if name in lines
        )
        _write(plan, Path(in_file), text)
    return {"raw": found}


def _percentiles(ordered: list[int]) -> Iterator[int]:
    """Values at YCSB's ranks: the percentage of the number of values, cut to a whole number."""
    for percent in _PERCENTILES:
        place = int(len(ordered) * percent / 100)
        yield ordered[min(place, len(ordered) - 1)]


def _logs(folder: Path) -> list[Path]:
    """Logs of the clients, in their order."""
    return sorted(folder.iterdir(), key=lambda path: int(path.name.rpartition(".")[2]))


def write_histogram_logs(plan: DialectPlan, core: DialectCore, record: Record) -> None:
    """Write the histogram logs that the command line asks for.

    Raises
    ------
    IolabError : one cannot be written; results are stored all the same.
    """
    show = _shown(plan)
    if show is None or show["hdr_path"] is None:
        return
    phases: list[PhaseRecord] = record["phases"]
    event = json.dumps({"event": "logs", "phases": phases})
    for log in json.loads(core.dialect_render(plan.dialect, plan.text, event)):
        _write(plan, Path(f"{show['hdr_path']}{log['name']}.hdr"), log["text"])


def _write(plan: DialectPlan, path: Path, text: str) -> None:
    try:
        write_file(path, text.encode(), plan.allowed)
    except OSError as error:
        raise IolabError(
            f"{path} cannot be written: {error.strerror}", "the results are stored"
        ) from None
