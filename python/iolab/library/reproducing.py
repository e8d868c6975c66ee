"""Published figures, simulated again and compared."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from iolab import reproduced
from iolab.errors import IolabError
from iolab.library.disk_counters import Counters, SolarisFigures, kstat_of, solaris_figures
from iolab.library.simulate_trial import SimulatedTrial, simulate
from iolab.reproduced import page
from iolab.reproduced.compared import ComparedNumber, Reproduced
from iolab.reproduced.documents import DOCUMENTS
from iolab.reproduced.model import Document, RepeatedTrial, Row
from iolab.reproduced.published import Published, published
from iolab.reproduced.rules import TwoNumbers, Word
from iolab.store.users_files import Allowed, opened_replacing, refuse_foreign

if TYPE_CHECKING:
    from iolab.protocol import PhaseRecord

STACK_ENDING: Final = ".toml"
_SEED: Final = 1
_KIB: Final = 1024
_NS_PER_S: Final = 1e9
_INTERVAL_NS: Final = 5_000_000_000
"""Of the published tables of iostat."""
_EDGES: Final = 1
"""Intervals at each end in which a file begins or ends, with its metadata."""
_COLUMNS: Final[dict[str, Callable[[SolarisFigures], float]]] = {
    "r/s": lambda of: of.reads_per_s,
    "w/s": lambda of: of.writes_per_s,
    "kr/s": lambda of: of.kib_read_per_s,
    "kw/s": lambda of: of.kib_written_per_s,
    "wait": lambda of: of.wait,
    "actv": lambda of: of.active,
    "svc_t": lambda of: of.service_ms,
    "%w": lambda of: of.wait_percent,
    "%b": lambda of: of.busy_percent,
}


def documents(keys: Sequence[str]) -> tuple[Document, ...]:
    """Documents by key, all without one.

    Raises
    ------
    IolabError : a key is none.
    """
    known = {document.key: document for document in DOCUMENTS}
    for key in keys:
        if key.casefold() not in known:
            raise IolabError(f"`{key}` is not a document", f"there are {', '.join(known)}")
    return tuple(known[key] for key in dict.fromkeys(map(str.casefold, keys))) or DOCUMENTS


def reproduce(document: Document) -> Reproduced:
    """Simulate what a document measured, and compare number by number.

    Raises
    ------
    TestbedError : a trial failed.
    """
    trials = _Trials()
    values = [_simulated(row, trials) for row in document.rows]
    outcomes = list[ComparedNumber]()
    for row, value in zip(document.rows, values, strict=True):
        told = published(row.place)
        other = None
        if row.other is not None:
            other = _pair(document.rows[row.other], values[row.other])
        word = _word(row, told, value, other)
        outcomes.append(ComparedNumber(row, told, value, word, _part(row, trials)))
    return Reproduced(document, tuple(outcomes))


def write_page(found: Reproduced, folder: Path, overwrite: tuple[str, ...] = ()) -> Path:
    """Write the page of a document, named after its key; one that iolab wrote is replaced.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    IolabError : it cannot be written.
    """
    out = folder / f"{found.document.key}.md"
    allowed = Allowed.of(overwrite)
    refuse_foreign([out], allowed)
    try:
        with opened_replacing(out, allowed) as file:
            file.write(page.text(found).encode())
    except OSError as error:
        raise IolabError(
            f"{out} cannot be written: {error.strerror}", "name another folder"
        ) from None
    return out


def page_of(key: str) -> str:
    """Markdown of the page of a document.

    Raises
    ------
    IolabError : there is no such document.
    """
    (document,) = documents([key])
    return page.text(reproduce(document))


class _Trials:
    """Trials that were simulated; each is simulated once."""

    def __init__(self) -> None:
        self._found = dict[RepeatedTrial, SimulatedTrial]()

    def of(self, setup: RepeatedTrial) -> SimulatedTrial:
        """The trial of a setup."""
        if setup not in self._found:
            knobs = {"scheduler": setup.scheduler} if setup.scheduler else {}
            with _stack(setup.stack) as name:
                self._found[setup] = simulate(
                    f"sim:{name}", workload=setup.workload, knobs=knobs, seed=_SEED
                )
        return self._found[setup]


@contextmanager
def _stack(name: str) -> Generator[str]:
    """A profile's name, or the path of a stack file of the package."""
    if not name.endswith(STACK_ENDING):
        yield name
        return
    with as_file(files(reproduced) / "stacks" / name) as path:
        yield str(path)


def _simulated(row: Row, trials: _Trials) -> float | None:
    """The number of a row in the document's unit."""
    if row.setup is None:
        return None
    trial = trials.of(row.setup)
    if row.figure == "iostat":
        return _iostat(_phases(trial)[0], row.of)
    if row.figure == "elapsed":
        (phase,) = (phase for phase in _phases(trial) if phase["name"] == row.of)
        return phase["elapsed_ns"] / _NS_PER_S
    if row.figure == "operations":
        return trial.metrics[row.of]["throughput_ops_per_s"]
    rates = {name: m["throughput_bytes_per_s"] / _KIB for name, m in trial.metrics.items()}
    return rates[row.of] if row.figure == "throughput" else fmean(rates.values())


def _part(row: Row, trials: _Trials) -> float | None:
    """Share of one operation in the sum whose mean the row is."""
    if row.setup is None or row.figure != "mean_throughput":
        return None
    rates = {n: m["throughput_bytes_per_s"] for n, m in trials.of(row.setup).metrics.items()}
    return rates[row.of] / sum(rates.values())


def _phases(trial: SimulatedTrial) -> Sequence[PhaseRecord]:
    return trial.record["phases"] if trial.record is not None else ()


def _iostat(phase: PhaseRecord, column: str) -> float:
    """Mean of a column over the intervals of 5 s between the first and the last one."""
    series = phase["devices"][0].get("series")
    if not series:
        raise IolabError("the simulated trial holds no counters of its device", "report it, please")
    readings = [Counters.of_row(row) for row in series["counters"]]
    rows, begin_ns = [(0, readings[0])], 0
    for at_ns, counters in zip(series["at_ns"], readings, strict=True):
        if at_ns - begin_ns >= _INTERVAL_NS:
            rows.append((at_ns, counters))
            begin_ns = at_ns
    figures = [
        solaris_figures(kstat_of(now.since(before)), (now_ns - before_ns) / _NS_PER_S)
        for (before_ns, before), (now_ns, now) in pairwise(rows)
    ]
    return fmean(_COLUMNS[column](of) for of in figures[_EDGES:-_EDGES])


def _pair(row: Row, value: float | None) -> TwoNumbers | None:
    told = published(row.place).value
    return TwoNumbers(told, value) if told is not None and value is not None else None


def _word(row: Row, told: Published, value: float | None, other: TwoNumbers | None) -> Word:
    if told.value is None or (row.other is not None and other is None and value is not None):
        return "lost"
    if value is None or row.rule is None:
        return "not simulated"
    if not row.rule.holds(TwoNumbers(told.value, value), other):
        return "missed"
    return "fitted" if row.expected == "fitted" else "agrees"
