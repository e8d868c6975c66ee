"""Block traces: found, shown, converted, measured and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from iolab.errors import TraceError
from iolab.library import trace_tables
from iolab.library.drawn_file import check_ending, content_of
from iolab.library.services import Services
from iolab.regular_file import refuse_endless
from iolab.run.traces import ENDING, FOLDER
from iolab.store.users_files import Allowed, opened_new

if TYPE_CHECKING:
    from iolab.protocol import (
        OnlyReadAnswer,
        TraceConvertedAnswer,
        TraceMeasuredAnswer,
        TracePlotAnswer,
        TracesCompared,
        TraceShowOptions,
    )

STANDARD: Final = "-"
"""Standard input or output instead of a file."""

Group: TypeAlias = Literal["device", "process", "direction", "size"]
"""By what the stages of a trace are measured."""
Style: TypeAlias = Literal["stages", "summary", "btt"]
"""Form of the text of measures."""
Sink: TypeAlias = Callable[[bytes], object]
"""Takes a piece of output."""


@dataclass(frozen=True)
class Traced:
    """Files of one trace, and the devices that are wanted of it: all unless some are named."""

    files: Sequence[str]
    devices: Sequence[str] = ()
    part_ns: tuple[int, int] | None = None
    """Part that is wanted: from one time on and before another, since the first event."""


class _Reader(trace_tables.ColumnsCore, Protocol):
    """Functions of the extension about traces."""

    def trace_show(self, inputs: trace_tables.Inputs, options_json: str, sink: Sink, /) -> str: ...
    def trace_convert(
        self, inputs: trace_tables.Inputs, output: str, facts: str, sink: Sink, /
    ) -> str: ...
    def trace_output_of(self, name: str, /) -> str | None: ...
    def trace_stages(self, inputs: trace_tables.Inputs, by: str, style: str, /) -> str: ...
    def trace_plot(self, inputs: trace_tables.Inputs, /) -> str: ...
    def trace_diff(self, first: trace_tables.Inputs, second: trace_tables.Inputs, /) -> str: ...


def _reader(services: Services) -> _Reader:
    return cast("_Reader", services.load_core())


def show_trace(
    traced: Traced, options: TraceShowOptions, sink: Sink, services: Services
) -> OnlyReadAnswer:
    """Write a trace as blkparse does, piece by piece.

    Raises
    ------
    TraceError : no file is a trace, or an option cannot be understood.
    """
    with inputs_of(traced) as inputs:
        told = _reader(services).trace_show(inputs, json.dumps(options), sink)
    return json.loads(told)


def output_format(out: str, asked: str | None, services: Services) -> str:
    """The format that is asked for, or that the ending of a file's name stands for.

    Raises
    ------
    TraceError : it stands for none, or what writes it is not installed.
    """
    path = Path(out)
    kind = trace_tables.kind_of(path.name)
    output = asked or kind or _reader(services).trace_output_of(path.name)
    if output is None:
        raise TraceError(
            f"{path} does not say by its ending which format is meant",
            "name it with --to; endings are .iotrace .blktrace .txt .csv .iolog .parquet .arrow",
        )
    if output in trace_tables.KINDS:
        trace_tables.require_writer(output)
        if out == STANDARD:
            raise TraceError(f"{output} needs a file, not standard output", "name one")
    return output


def convert_trace(
    traced: Traced, output: str, sink: Sink, services: Services
) -> TraceConvertedAnswer:
    """Write a trace in another format, piece by piece.

    Raises
    ------
    TraceError : no file is a trace, or the format cannot hold it.
    """
    with inputs_of(traced) as inputs:
        names = ", ".join(Path(name).name for name, _ in inputs[0])
        facts = json.dumps({"converted from": names})
        return json.loads(_reader(services).trace_convert(inputs, output, facts, sink))


def convert_into(
    traced: Traced, output: str, out: Path, overwrite: Sequence[str], services: Services
) -> TraceConvertedAnswer:
    """Write a trace in another format into a new file, which has its name only when it is whole.

    Raises
    ------
    RefusedError : the file exists, and `overwrite` does not name it.
    TraceError : it cannot be written; or as for :func:`convert_trace`.
    """
    try:
        with opened_new(out, Allowed.of(overwrite)) as file:
            if output not in trace_tables.KINDS:
                return convert_trace(traced, output, file.write, services)
            with inputs_of(traced) as inputs:
                return trace_tables.write_table(_reader(services), inputs, output, file)
    except OSError as error:
        raise TraceError(
            f"{out} cannot be written: {error.strerror or error}", "name another place"
        ) from None


def measure_trace(
    traced: Traced, by: Group, style: Style, services: Services
) -> TraceMeasuredAnswer:
    """Measure how long each stage of a request takes, and how deep the queues are.

    Raises
    ------
    TraceError : no file is a trace.
    """
    with inputs_of(traced) as inputs:
        return json.loads(_reader(services).trace_stages(inputs, by, style))


def diff_traces(first: Traced, second: Traced, services: Services) -> TracesCompared:
    """Compare the figures of two traces.

    Raises
    ------
    TraceError : one of them is no trace.
    """
    with inputs_of(first) as one, inputs_of(second) as other:
        return json.loads(_reader(services).trace_diff(one, other))


@dataclass(frozen=True)
class PlotWanted:
    """A file with a plot."""

    out: Path
    """A page (``.html``), or a drawing (``.svg``) or image (``.png``) of the device with the most
    requests.
    """
    command: str
    """Command line that draws it again."""
    overwrite: Sequence[str] = ()
    """Files of the user's own that may be replaced."""
    is_movie: bool = False
    """An animation of the head instead: a page of the busiest device of one trace."""


def plot_traces(
    traces: Sequence[tuple[str, Traced]], wanted: PlotWanted, services: Services
) -> list[TracePlotAnswer]:
    """Draw traces beside each other into a new file.

    Parameters
    ----------
    traces : one or two, with the names that stand above them.

    Returns
    -------
    list : what was drawn, trace by trace.

    Raises
    ------
    TraceError : no file is a trace, none has a request, or the file ends otherwise.
    RefusedError : the file exists, and `wanted` does not allow to replace it.
    """
    from iolab.report.head_movie import movie_page
    from iolab.report.trace_page import picture_drawing, picture_page

    out = wanted.out
    if wanted.is_movie and (out.suffix != ".html" or len(traces) > 1):
        raise TraceError(
            "an animation is a page of one trace", "name a page (.html), and leave --beside out"
        )
    check_ending(out)
    plots: list[TracePlotAnswer] = []
    for name, traced in traces:
        with inputs_of(traced) as inputs:
            plots.append(json.loads(_reader(services).trace_plot(inputs)))
        if not plots[-1]["devices"]:
            raise TraceError(f"{name} has no request to draw", "name a trace with requests")
    named = [(name, plot) for (name, _), plot in zip(traces, plots, strict=True)]
    try:
        with opened_new(out, Allowed.of(wanted.overwrite)) as file:
            if wanted.is_movie:
                file.write(movie_page(*named[0], wanted.command).encode())
            else:
                page = partial(picture_page, named, wanted.command)
                file.write(content_of(out, page, partial(picture_drawing, named)))
    except OSError as error:
        raise TraceError(
            f"{out} cannot be written: {error.strerror or error}", "name another place"
        ) from None
    return plots


@contextmanager
def inputs_of(traced: Traced) -> Generator[trace_tables.Inputs, None, None]:
    """Files of a trace: by name, or by the name that the files of blktrace or strace share."""
    with ExitStack() as stack:
        files: list[tuple[str, Callable[[int], bytes] | None]] = []
        for name in traced.files:
            path = Path(name)
            if path.is_dir():
                path = _only_trace_in(path)
                name = str(path)
            if name == STANDARD or path.exists():
                refuse_endless(path)
                files.append((name, _unpacked(path, stack) if _is_packed(path) else None))
                continue
            parts = [part for part in path.parent.glob("*") if _is_part_of(part, path.name)]
            if not parts:
                raise TraceError(f"{name}: there is no such file", "check its name")
            parts.sort(key=lambda part: int(part.name.rpartition(".")[2]))
            files.extend((str(part), None) for part in parts)
        yield files, list(traced.devices), traced.part_ns


_GZIP_MAGIC: Final = b"\x1f\x8b"
"""Beginning of a file that gzip packed (RFC 1952); no trace begins so."""


def _is_packed(path: Path) -> bool:
    """Tell whether gzip packed a file: by its name, or by its beginning."""
    if path.name.endswith(".gz") or not path.is_file():
        return path.name.endswith(".gz")
    try:
        with path.open("rb") as file:
            return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    except OSError:
        return False  # Whoever reads it says why that fails.


def _only_trace_in(directory: Path) -> Path:
    """The trace of a results directory, or of its folder of traces, if it has only one."""
    found = sorted({*directory.glob(f"*{ENDING}"), *(directory / FOLDER).glob(f"*{ENDING}")})
    if len(found) == 1:
        return found[0]
    if not found:
        raise TraceError(
            f"{directory} holds no trace", "run the study with --trace, or name a file"
        )
    raise TraceError(
        f"{directory} holds {len(found)} traces", f"name one of them: {found[0]}, ... {found[-1]}"
    )


def _is_part_of(part: Path, name: str) -> bool:
    """Tell whether a file is ``NAME.blktrace.CPU``, or ``NAME.THREAD`` as `strace -ff` makes it."""
    rest = part.name.removeprefix(f"{name}.").removeprefix("blktrace.")
    return rest != part.name and rest.isdecimal()


def _unpacked(path: Path, stack: ExitStack) -> Callable[[int], bytes]:
    """Bytes of a file that gzip packed."""
    import gzip
    import zlib

    file = gzip.GzipFile(path, "rb")
    stack.callback(file.close)

    def read(count: int) -> bytes:
        try:
            return file.read1(count)
        except (OSError, EOFError, zlib.error) as error:
            raise TraceError(f"{path} cannot be unpacked: {error}", "name a whole file") from None

    return read
