"""Block traces as tables of columns: Parquet and Arrow files.

The compiled half hands over batches in Arrow's memory layout; pyarrow, which is not installed with
iolab, packs them. Memory does not grow with the length of a trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Final, Protocol

from iolab.errors import TraceError

if TYPE_CHECKING:
    from types import ModuleType

    from iolab.protocol import TraceConvertedAnswer

Files = Sequence[tuple[str, Callable[[int], bytes] | None]]
Inputs = tuple[Files, Sequence[str]] | tuple[Files, Sequence[str], tuple[int, int] | None]
"""Files of a trace, with what gives bytes where one is not read by its name; wanted devices."""
Buffers = tuple[bytes, bytes, bytes]
"""Validity, offsets, values; empty where a column has none."""

ENDINGS: Final[Mapping[str, str]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Ending of a file's name to the format that it stands for."""
KINDS: Final = ("parquet", "arrow")


class ColumnsCore(Protocol):
    """Functions of `iolab._core` that are needed."""

    def trace_column_kinds(self) -> str:
        """Names and types of the columns, as JSON."""
        ...

    def trace_columns(self, inputs: Inputs, sink: Callable[[int, list[Buffers]], object], /) -> str:
        """Hand a trace over in batches; what was found, as JSON."""
        ...


class BatchWriter(Protocol):
    """Functions that are needed of a writer of pyarrow."""

    def write_batch(self, batch: object, /) -> None:
        """Append a batch."""
        ...


def kind_of(name: str) -> str | None:
    """Format that a file name's ending stands for, if it is a table of columns."""
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def require_writer(kind: str) -> None:
    """Refuse what cannot be written here, before a file is made.

    Raises
    ------
    TraceError : pyarrow is not installed; says how to get it.
    """
    _pyarrow(kind)


def write_table(
    core: ColumnsCore, inputs: Inputs, kind: str, file: IO[bytes]
) -> TraceConvertedAnswer:
    """Write a trace as a table into an open file; returns what the reader found.

    Parameters
    ----------
    kind : of `KINDS`. Arrow is the file format of Arrow IPC, also called Feather version 2.

    Raises
    ------
    TraceError : pyarrow is not installed, or the trace cannot be read.
    OSError : the file cannot be written.
    """
    arrow = _pyarrow(kind)
    columns: list[dict[str, str]] = json.loads(core.trace_column_kinds())
    types = [getattr(arrow, column["kind"])() for column in columns]
    schema = arrow.schema(
        [(column["name"], kind) for column, kind in zip(columns, types, strict=True)]
    )
    with _writer(kind, file, schema) as writer:

        def write(rows: int, batch: list[Buffers]) -> None:
            arrays = [
                arrow.Array.from_buffers(one, rows, _buffers(arrow, given))
                for one, given in zip(types, batch, strict=True)
            ]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))

        told: TraceConvertedAnswer = json.loads(core.trace_columns(inputs, write))
    return {**told, "output": kind, "left_out": 0}


def _buffers(arrow: ModuleType, given: Buffers) -> list[object]:
    """Buffers as pyarrow wants them: validity or None, offsets if there are any, values."""
    validity, offsets, values = given
    wrapped: list[object] = [arrow.py_buffer(validity) if validity else None]
    if offsets:
        wrapped.append(arrow.py_buffer(offsets))
    return [*wrapped, arrow.py_buffer(values)]


def _writer(kind: str, file: IO[bytes], schema: object) -> AbstractContextManager[BatchWriter]:
    if kind == "parquet":
        from pyarrow import parquet  # pyright: ignore

        return parquet.ParquetWriter(file, schema, compression="zstd")  # pyright: ignore
    from pyarrow import ipc  # pyright: ignore

    return ipc.new_file(file, schema)  # pyright: ignore


def _pyarrow(kind: str) -> ModuleType:
    try:
        import pyarrow  # pyright: ignore
    except ImportError:
        raise TraceError(
            f"{kind} is written by pyarrow, which is not installed",
            "pip install 'iolab[parquet]', or convert to .csv, which needs nothing",
        ) from None
    return pyarrow  # pyright: ignore
