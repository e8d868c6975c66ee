"""Pictures of the traces that lie beside a study, for its report.

A trace is drawn only if it is the one that was recorded, by its digest; names come from a database
that anybody may have written. Left out: traces that together are too large to be drawn while
somebody waits; the report is whole without them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from iolab.digest import sha256
from iolab.errors import IolabError
from iolab.frozen import replace
from iolab.report.traced_trials import wanted_trials
from iolab.run.traces import ENDING, FOLDER
from iolab.store.rows import StudyData, TracedPhase

if TYPE_CHECKING:
    from iolab.library.services import Services
    from iolab.library.trace_tables import Inputs
    from iolab.protocol import TracePlotAnswer

BYTES_MAX: Final = 64 << 20
"""Of all traces that are drawn: about 10 million events, some seconds."""
_CHUNK_BYTES: Final = 1 << 20
_Opened: TypeAlias = "tuple[str, Callable[[int], bytes]]"
"""Name of a trace, and what gives its bytes."""


class _Reader(Protocol):
    """Function of the extension that draws traces."""

    def trace_plot(self, inputs: Inputs, span_ns: tuple[int, int] | None = None, /) -> str: ...


def with_traces(data: StudyData, directory: Path | None, services: Services) -> StudyData:
    """The study with the pictures that its report shows, as far as the traces are there.

    Parameters
    ----------
    data : a study as it is stored.
    directory : its results; None is an archive, which holds no traces.
    services : have the extension.
    """
    if directory is None or not data.traced:
        return data
    core = cast("_Reader", services.load_core())
    plots: dict[str, TracePlotAnswer] = {}
    left = BYTES_MAX
    for trial_id in wanted_trials(data):
        phases = [phase for phase in data.traced if phase.trial_id == trial_id]
        path = _trace(directory, phases[0].file)
        if path is None:
            continue
        with suppress(OSError, ValueError), open(path, "rb", opener=_opened_plain) as file:
            size = _size_if_recorded(file, phases[0].sha256, left)
            if size is not None:
                left -= size
                plot = _plot((path.name, file.read), phases, core)
                if plot is not None:
                    plots[trial_id] = plot
    return replace(data, plots=plots)


def _trace(directory: Path, name: str) -> Path | None:
    """Path of a trace, if its name is one that a run gives."""
    parts = PurePosixPath(name).parts
    if len(parts) != 2 or parts[0] != FOLDER or not name.endswith(ENDING):
        return None
    return directory / FOLDER / parts[1]


def _size_if_recorded(file: IO[bytes], digest: str, most: int) -> int | None:
    """Size of the file that was recorded; None if this is another one, or it is too large.

    The file then stands at its beginning: what is drawn is what was digested.
    """
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        return None
    found = sha256()
    while chunk := file.read(_CHUNK_BYTES):
        found.update(chunk)
    file.seek(0)
    return status.st_size if found.hexdigest() == digest else None


def _opened_plain(name: str, flags: int) -> int:
    """Open what is no link, and without waiting for the other end of a pipe."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _plot(trace: _Opened, phases: Iterable[TracedPhase], core: _Reader) -> TracePlotAnswer | None:
    """Picture of a trial, from the beginning of its first operation to the end of its last."""
    spans = [phase.span_ns for phase in phases]
    span = min(begin for begin, _ in spans), max(end for _, end in spans)
    try:
        plot: TracePlotAnswer = json.loads(core.trace_plot(([trace], []), span))
    except IolabError:
        return None
    return plot if plot["devices"] else None
