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
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.stored import opened
from iolab.store.db import Store
from iolab.store.long_form import LongGroup, Value
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
_CELLS_MAX: Final = 100_000
"""Texts that are kept as they are written."""
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


def _write_text(kind: Kind, columns: Sequence[str], groups: Iterator[LongGroup], sink: Sink) -> int:
    lines_of, begin, between, end = _CSV if kind == "csv" else _JSON
    text, n_rows = begin(columns), 0
    for part in _parts(lines_of(columns, groups), _TOGETHER):
        text += between.join(part)
        n_rows += len(part)
        sink(text.encode())
        text = between
    sink(((text if n_rows == 0 else "") + end).encode())
    return n_rows


def _csv_head(columns: Sequence[str]) -> str:
    return _csv_line(columns) + "\n"


def _csv_line(cells: Sequence[Value]) -> str:
    """A line as RFC 4180 has it, without its end; no cell is a formula."""
    text = io.StringIO()
    shown = (cell_text(visible_line(c)) if isinstance(c, str) else c for c in cells)
    csv.writer(text, lineterminator="").writerow(shown)
    return text.getvalue()


def _csv_lines(columns: Sequence[str], groups: Iterator[LongGroup]) -> Iterator[str]:
    del columns
    metrics = _Shown(lambda name: _csv_line([name]))
    cells = _Cells()
    for (trial, *others), values in groups:
        begin = ",".join([_csv_cell(trial), *map(cells.__getitem__, others)])
        for metric, value in values:
            yield f"{begin},{metrics[metric]},{value!r}\n"


def _json_lines(columns: Sequence[str], groups: Iterator[LongGroup]) -> Iterator[str]:
    """One array with an object per value, each on a line of its own."""
    names = [f"{encode_basestring_ascii(name)}: " for name in columns]
    metrics = _Shown(lambda name: names[-2] + encode_basestring_ascii(name))
    for shared, values in groups:
        begin = "{" + "".join([f"{a}{_json(b)}, " for a, b in zip(names, shared, strict=False)])
        for metric, value in values:
            yield f"{begin}{metrics[metric]}, {names[-1]}{_json(value)}}}"


def _csv_cell(value: Value) -> str:
    """A cell as it stands in a line: alone on its line an empty one would have quotes."""
    if isinstance(value, str):
        # Of letters and digits nothing is quoted, shown otherwise or taken for a formula.
        is_plain = not value or (value.isascii() and value.isalnum())
        return value if is_plain else _csv_line([value])
    return "" if value is None else repr(value)


class _Cells(dict[Value, str]):
    """Cells of CSV as they are written: most of them stand in many lines."""

    def __missing__(self, value: Value) -> str:
        # Only texts are kept: 1 and 1.0 are one key, and are written differently.
        found = _csv_cell(value)
        if isinstance(value, str) and len(self) < _CELLS_MAX:
            self[value] = found
        return found


class _Shown(dict[str, str]):
    """Names as they are written; each is made ready once."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> str:
        found = self[name] = self._make(name)
        return found


_CSV: Final = (_csv_lines, _csv_head, "", "")
_JSON: Final = (_json_lines, lambda _columns: "[\n", ",\n", "\n]\n")  # pyright: ignore
"""Lines, what stands before, between and behind them."""


def _json(value: Value) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    return repr(value)


_T = TypeVar("_T")


def _parts(items: Iterator[_T], size: int) -> Iterator[list[_T]]:
    while part := list(islice(items, size)):
        yield part


def _write_parquet(columns: Sequence[str], groups: Iterator[LongGroup], file: IO[bytes]) -> int:
    arrow, parquet = _pyarrow()
    kinds = [getattr(arrow, _NUMBERS.get(name, "string"))() for name in columns]
    schema = arrow.schema(list(zip(columns, kinds, strict=True)))
    rows = ((*shared, *pair) for shared, values in groups for pair in values)
    total = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for part in _parts(rows, _BATCH):
            values = zip(*part, strict=True)
            arrays = [arrow.array(v, kind) for v, kind in zip(values, kinds, strict=True)]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))
            total += len(part)
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
