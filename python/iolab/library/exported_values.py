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
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.stored import opened
from iolab.store.checked_reading import read_while_checked
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
    IolabError : neither says it, or both say different ones; or Parquet is wanted and cannot be
        written here.
    """
    told = ENDINGS.get(out.suffix.lower()) if out is not None else "csv"
    if out is not None and asked is not None and told not in (None, asked):
        raise IolabError(
            f"--{asked} and the ending of {out} contradict each other",
            f"leave --{asked} out, or name a file that ends in another way",
        )
    kind = asked or told
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
    StoreError : there is no study that can be read, or it is damaged; no file is left.
    IolabError : it cannot be written.
    """
    allowed = Allowed.of(overwrite)
    allowed.refuse_useless([out])
    refuse_foreign([out], allowed)  # Before the work.
    with opened(results, note) as database, read_while_checked(database) as (store, confirm):
        columns, rows = store.contents.values()
        try:
            with closing(rows), opened_replacing(out, allowed) as file:
                if kind == "parquet":
                    n_rows = _write_parquet(columns, rows, file)
                else:
                    n_rows = _write_text(kind, columns, rows, file.write)
                confirm()
        except OSError as error:
            raise IolabError(
                f"{out} cannot be written: {error.strerror}", "name another file with --out"
            ) from None
    return Written(out, kind, n_rows, columns)


def _write_text(kind: Kind, columns: Sequence[str], groups: Iterator[LongGroup], sink: Sink) -> int:
    lines_of, begin, between, end = _CSV if kind == "csv" else _JSON
    text, n_rows, lines = begin(columns), 0, list[str]()
    for some in lines_of(columns, groups):
        lines += some
        if len(lines) >= _TOGETHER:
            sink((text + between.join(lines)).encode())
            n_rows, text, lines = n_rows + len(lines), between, []
    if lines:
        sink((text + between.join(lines)).encode())
        n_rows, text = n_rows + len(lines), between
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


def _csv_lines(columns: Sequence[str], groups: Iterator[LongGroup]) -> Iterator[list[str]]:
    del columns
    metrics = _Shown(lambda name: f",{_csv_line([name])},")
    cells = _Cells(_csv_cell)
    for shared, values in groups:
        # Only texts are kept: 1 and 1.0 are one key, and are written differently.
        begin = ",".join([cells[c] if type(c) is str else _csv_cell(c) for c in shared])
        yield [f"{begin}{metrics[metric]}{value!r}\n" for metric, value in values]


def _json_lines(columns: Sequence[str], groups: Iterator[LongGroup]) -> Iterator[list[str]]:
    """One array with an object per value, each on a line of its own."""
    names = [f"{encode_basestring_ascii(name)}: " for name in columns]
    last = names[-1]
    metrics = _Shown(lambda name: f"{names[-2]}{encode_basestring_ascii(name)}, {last}")
    cells = _Cells(_json)
    for shared, values in groups:
        shown = [cells[c] if type(c) is str else _json(c) for c in shared]
        begin = "{" + "".join([f"{a}{b}, " for a, b in zip(names, shown, strict=False)])
        yield [
            f"{begin}{metrics[metric]}{value!r}}}"
            if value - value == 0  # Finite.
            else f"{begin}{metrics[metric]}null}}"
            for metric, value in values
        ]


def _csv_cell(value: Value) -> str:
    """A cell as it stands in a line: alone on its line an empty one would have quotes."""
    if isinstance(value, str):
        # Of letters and digits nothing is quoted, shown otherwise or taken for a formula.
        is_plain = not value or (value.isascii() and value.isalnum())
        return value if is_plain else _csv_line([value])
    return "" if value is None else repr(value)


class _Shown(dict[str, str]):
    """Texts as they are written; each is made ready once."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> str:
        found = self[name] = self._make(name)
        return found


class _Cells(_Shown):
    """Cells that are texts, of which most stand in many lines; names of trials do not."""

    def __missing__(self, name: str) -> str:
        return super().__missing__(name) if len(self) < _CELLS_MAX else self._make(name)


_CSV: Final = (_csv_lines, _csv_head, "", "")
_JSON: Final = (_json_lines, lambda _columns: "[\n", ",\n", "\n]\n")  # pyright: ignore
"""Lines, what stands before, between and behind them."""


def _json(value: Value) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    return repr(value)


def _write_parquet(columns: Sequence[str], groups: Iterator[LongGroup], file: IO[bytes]) -> int:
    arrow, parquet = _pyarrow()
    kinds = [getattr(arrow, _NUMBERS.get(name, "string"))() for name in columns]
    schema = arrow.schema(list(zip(columns, kinds, strict=True)))
    total = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for part in _parts(groups):
            # What values share is made once, and then repeated by Arrow.
            places = arrow.array([n for n, (_, values) in enumerate(part) for _ in values])
            shared = zip(*(cells for cells, _ in part), strict=True)
            pairs = zip(*(pair for _, values in part for pair in values), strict=True)
            arrays = [arrow.array(v, k).take(places) for v, k in zip(shared, kinds, strict=False)]
            arrays += [arrow.array(v, k) for v, k in zip(pairs, kinds[-2:], strict=True)]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))
            total += len(places)
    return total


def _parts(groups: Iterator[LongGroup]) -> Iterator[list[LongGroup]]:
    """Groups that have together about as many values as a batch."""
    part, n_rows = list[LongGroup](), 0
    for group in groups:
        if group[1]:
            part.append(group)
            n_rows += len(group[1])
        if n_rows >= _BATCH:
            yield part
            part, n_rows = [], 0
    if part:
        yield part


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
