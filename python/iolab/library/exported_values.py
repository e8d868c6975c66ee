"""The values of a stored study as CSV, JSON or Parquet, in long form: one row per value.

Rows are read and written as they come: memory does not grow with the study. Columns and their
order: `iolab.store.long_form`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.stored import opened
from iolab.store.db import Store
from iolab.store.long_form import LongRow, Value
from iolab.store.users_files import Allowed, opened_replacing, refuse_foreign
from iolab.visible import cell_text, visible_line

if TYPE_CHECKING:
    from types import ModuleType

Kind: TypeAlias = Literal["csv", "json", "parquet"]
Sink: TypeAlias = Callable[[bytes], object]
"""Takes a piece of output."""
KINDS: Final[tuple[Kind, ...]] = ("csv", "json", "parquet")
ENDINGS: Final[dict[str, Kind]] = {f".{kind}": kind for kind in KINDS}
_TOGETHER: Final = 4096
"""Rows of a piece of text."""
_BATCH: Final = 65_536
"""Rows of a batch of Parquet."""
_NUMBERS: Final = {
    **dict.fromkeys(("round", "position", "io_size_bytes"), "int64"),
    **dict.fromkeys(("cache_share", "value"), "float64"),
}
"""Columns that are not text, and what they hold."""


@frozen
class Written:
    """A file of values."""

    path: Path
    kind: Kind
    rows: int
    columns: tuple[str, ...]


def kind_of(out: Path | None, asked: Kind | None) -> Kind:
    """Format that is asked for, or that the ending of a file's name stands for.

    Raises
    ------
    IolabError : neither says it; or Parquet is wanted and cannot be written here.
    """
    kind = asked or (ENDINGS.get(out.suffix.lower()) if out is not None else "csv")
    if kind is None:
        raise IolabError(
            f"{out} does not say by its ending which format is meant",
            "add --csv, --json or --parquet",
        )
    if kind == "parquet":
        if out is None:
            raise IolabError("Parquet needs a file, not standard output", "name one with --out")
        _pyarrow()
    return kind


def print_values(results: Path, kind: Kind, sink: Sink, note: Callable[[str], None]) -> None:
    """Write the values as text, piece by piece.

    Raises
    ------
    StoreError : there is no study that can be read.
    """
    with opened(results, note) as database, Store.open_reader(database) as store:
        columns, rows = store.contents.values()
        with closing(rows):
            _write_text(kind, columns, rows, sink)


def write_values(
    results: Path, out: Path, kind: Kind, overwrite: Sequence[str], note: Callable[[str], None]
) -> Written:
    """Write the values into a file, which gets its name when all of them are in it.

    Parameters
    ----------
    results : a results directory, its database or an archive.
    out : the file; one that iolab made and nobody changed since is replaced.
    kind : format; `kind_of` finds it.
    overwrite : files of the user's own that may be replaced.
    note : hears of what an archive says of itself.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    IolabError : it cannot be written.
    """
    allowed = Allowed.of(overwrite)
    allowed.refuse_useless([out])
    refuse_foreign([out], allowed)  # Before the work.
    with opened(results, note) as database, Store.open_reader(database) as store:
        columns, rows = store.contents.values()
        try:
            with closing(rows), opened_replacing(out, allowed) as file:
                if kind == "parquet":
                    n_rows = _write_parquet(columns, rows, file)
                else:
                    n_rows = _write_text(kind, columns, rows, file.write)
        except OSError as error:
            raise IolabError(
                f"{out} cannot be written: {error.strerror}", "name another file with --out"
            ) from None
    return Written(out, kind, n_rows, columns)


def _write_text(kind: Kind, columns: Sequence[str], rows: Iterator[LongRow], sink: Sink) -> int:
    written = _csv_pieces if kind == "csv" else _json_pieces
    n_rows = 0
    for n_more, text in written(columns, rows):
        n_rows += n_more
        sink(text.encode())
    return n_rows


def _csv_pieces(columns: Sequence[str], rows: Iterator[LongRow]) -> Iterator[tuple[int, str]]:
    """Lines as RFC 4180 has them, with plain line ends; no cell is a formula."""
    shown = dict[Value, Value]()

    def cell(value: Value) -> Value:
        if not isinstance(value, str):
            return value
        found = shown.get(value)
        if found is None:
            found = shown[value] = cell_text(visible_line(value))
        return found

    first = [tuple(map(cell, columns))]
    for n_rows, part in _parts(rows, _TOGETHER):
        if len(shown) > _BATCH:
            shown.clear()  # Every trial has a name of its own.
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [*first, *(tuple(map(cell, row)) for row in part)]
        )
        first = []
        yield n_rows, text.getvalue()


def _json_pieces(columns: Sequence[str], rows: Iterator[LongRow]) -> Iterator[tuple[int, str]]:
    """One array with an object per value, each on a line of its own."""
    names = [f"{encode_basestring_ascii(name)}: " for name in columns]
    opening = "[\n"
    for n_rows, part in _parts(rows, _TOGETHER):
        lines = [
            "{" + ", ".join([a + b for a, b in zip(names, map(_json, row), strict=True)]) + "}"
            for row in part
        ]
        yield n_rows, opening + ",\n".join(lines) if lines else opening
        opening = ",\n"
    yield 0, "\n]\n"


def _json(value: Value) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    return repr(value)


def _parts(rows: Iterator[LongRow], size: int) -> Iterator[tuple[int, list[LongRow]]]:
    """Rows in parts; the first part is there even if it is empty."""
    part = list(islice(rows, size))
    while True:
        yield len(part), part
        part = list(islice(rows, size))
        if not part:
            return


def _write_parquet(columns: Sequence[str], rows: Iterator[LongRow], file: IO[bytes]) -> int:
    arrow, parquet = _pyarrow()
    kinds = [getattr(arrow, _NUMBERS.get(name, "string"))() for name in columns]
    schema = arrow.schema(list(zip(columns, kinds, strict=True)))
    total = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for n_rows, part in _parts(rows, _BATCH):
            values = list(zip(*part, strict=True)) if part else [()] * len(columns)
            arrays = [arrow.array(v, kind) for v, kind in zip(values, kinds, strict=True)]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))
            total += n_rows
    return total


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow  # pyright: ignore
        from pyarrow import parquet  # pyright: ignore
    except ImportError:
        raise IolabError(
            "Parquet is written by pyarrow, which is not installed",
            "pip install 'iolab[parquet]', or export with --csv, which needs nothing",
        ) from None
    return pyarrow, parquet
