"""Files that a dialect writes at its end: the spreadsheet of -b, in either format."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, RefusedError
from iolab.library.dialect.plan import DialectCore, DialectPlan
from iolab.store import created_files
from iolab.store.db import STORE_NAME
from iolab.store.owner import refuse_distrusted
from iolab.store.users_files import FLAG, Allowed, refuse_foreign, write_file
from iolab.wording import counted

if TYPE_CHECKING:
    from xlsxwriter.chart import Chart
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

    from iolab.library.dialect.results import RowResult, WorkbookSheet
    from iolab.protocol import ShownByIozone

WORKBOOK_ENDING: Final = ".xlsx"
_SHEET_NAME_MAX: Final = 31


def refuse_own_files(plan: DialectPlan, written: Iterable[Path]) -> None:
    """Refuse results that would be written over each other, or over a file that is worked on.

    Raises
    ------
    IolabError : says which.
    """
    folder, on = Path(plan.values["directory"] or "."), plan.common["on"] or ""
    if on.startswith("dir:"):
        folder = Path(on.removeprefix("dir:"))
    worked = (
        {_place(folder / name) for name in plan.values["files"]} if not _is_apart(on) else set()
    )
    seen = set[tuple[int, int] | Path]()
    for path in written:
        if path.exists() and not path.is_file():
            continue  # A device or a pipe takes everything.
        place = _place(path)
        if place in worked:
            raise IolabError(
                f"{path} is one of the files that are worked on",
                "name another file for what is written",
            )
        if place in seen:
            raise IolabError(
                f"two results or logs are to be written into {path}", "give each a name of its own"
            )
        seen.add(place)


def _is_apart(on: str) -> bool:
    """Tell whether what is worked on lies on a loop device, on a disk, or in simulation."""
    return bool(on) and not on.startswith("dir:")


def _place(path: Path) -> tuple[int, int] | Path:
    """Identity of a file that is there, or the place where it will be."""
    try:
        found = path.stat()
    except OSError:
        return path.resolve()
    return (found.st_dev, found.st_ino)


def check_workbook(name: str | None, allowed: Allowed) -> None:
    """Refuse a spreadsheet that could not or must not be written, before anything is measured.

    Raises
    ------
    IolabError : it cannot; says why.
    RefusedError : a file is there that iolab did not make.
    """
    check_written(name, allowed, "-b")


def check_written(name: str | None, allowed: Allowed, option: str) -> None:
    """Refuse a file that an option names and that could not or must not be written.

    Raises
    ------
    IolabError : it cannot; says why.
    RefusedError : a file is there that iolab did not make.
    """
    if name is None:
        return
    path = Path(name)
    if path.is_dir():
        raise IolabError(f"{path} is a directory", f"name a file with {option}")
    place = path if path.exists() else path.parent
    if not place.exists():
        raise IolabError(f"{path.parent} does not exist", "make it first, or name another file")
    if not os.access(place, os.W_OK):
        raise IolabError(f"{path} cannot be written", f"name another file with {option}")
    refuse_distrusted(path.parent, option)
    refuse_foreign([path], allowed)


def check_all_written(names: Iterable[str], allowed: Allowed, option: str) -> list[Path]:
    """Refuse files that an option makes and that could not or must not be written; return them.

    Raises
    ------
    IolabError : one cannot be written; says why.
    RefusedError : one is there that iolab did not make.
    """
    paths = [Path(name) for name in names]
    for path in paths:
        check_written(str(path), allowed, option)
    return paths


def refuse_unnamed(paths: Iterable[Path], allowed: Allowed, source: Path) -> None:
    """Refuse files that a stored command line chooses and that the user did not name today.

    The maker of `source`, a results directory or an archive, chose them. Of an archive, and of a
    study that this user did not begin in that place, none is obeyed. One's own may choose new files
    in the working directory, and elsewhere those that iolab has made for the user before.

    Raises
    ------
    RefusedError : the user did not name one of them.
    """
    chosen = [*filter(_is_new_choice, elsewhere(paths))] if is_own(source) else _whole(paths)
    unnamed = [path for path in chosen if not allowed.has(path)]
    if not unnamed:
        return
    path, n_more = unnamed[0], len(unnamed) - 1
    is_inside = path.is_relative_to(Path.cwd().resolve())
    outside = "" if is_inside else ", which lies outside of the working directory"
    more = f" (and {counted(n_more, 'file')} more)" if n_more else ""
    raise RefusedError(
        f"the command line in {source} writes {path}{outside}{more}: nothing was measured",
        f"allow it with {FLAG} {quote(str(path))} if you want that file written",
    )


def is_own(source: Path) -> bool:
    """Tell whether this user began the study in a results directory, where it lies now."""
    from iolab.library.stored import directory_of

    directory = directory_of(source)
    return directory is not None and created_files.is_own_study(directory / STORE_NAME)


def _is_new_choice(path: Path) -> bool:
    """Tell whether nothing says that the user had a file written once."""
    if not path.exists():
        return True
    return not created_files.is_made(path.lstat()) and created_files.birth_of(path) is None


def elsewhere(paths: Iterable[Path]) -> list[Path]:
    """Those of the files that lie outside of the working directory, without links above them."""
    here = Path.cwd().resolve()
    return [path for path in _whole(paths) if not path.is_relative_to(here)]


def _whole(paths: Iterable[Path]) -> list[Path]:
    return [path.parent.resolve() / path.name for path in paths]


def write_files(plan: DialectPlan, core: DialectCore, rows: Sequence[RowResult]) -> None:
    """Write what the plan asks for.

    Raises
    ------
    IolabError : a file cannot be written; results are stored all the same.
    """
    name: str | None = plan.asked.get("workbook")
    if name is None:
        return
    try:
        if name.lower().endswith(WORKBOOK_ENDING):
            event = json.dumps({"event": "sheets", "rows": list(rows)})
            sheets = json.loads(core.dialect_render(plan.dialect, plan.text, event))
            content = _workbook(plan, sheets)
        else:
            event = json.dumps({"event": "end", "rows": list(rows)})
            content = core.dialect_file(plan.dialect, plan.text, event)
        write_file(Path(name), content, plan.allowed)
    except OSError as error:
        raise IolabError(
            f"{name} cannot be written: {error.strerror}", "the results are stored"
        ) from None


def _workbook(plan: DialectPlan, sheets: Sequence[WorkbookSheet]) -> bytes:
    """One worksheet per report, each with a chart."""
    import xlsxwriter

    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        bold = book.add_format({"bold": True})
        number = book.add_format({"num_format": "#,##0"})
        for sheet in sheets:
            title = str(sheet["title"])[:_SHEET_NAME_MAX]
            page = book.add_worksheet(title)
            across, down = sheet["axes"]
            page.write_string(0, 0, f"{sheet['title']}, {sheet['unit']}", bold)
            page.write_string(1, 0, cast("ShownByIozone", plan.values["show"])["command"])
            page.write_string(3, 0, f"{down} \\ {across}", bold)
            for column, name in enumerate(sheet["columns"], start=1):
                _write_name(page, (3, column), name, bold)
            for row, (name, values) in enumerate(sheet["rows"], start=4):
                _write_name(page, (row, 0), name, bold)
                for column, value in enumerate(values, start=1):
                    if value is not None:
                        page.write_number(row, column, value, number)
            page.set_column(0, 0, 28)
            page.set_column(1, max(1, len(sheet["columns"])), 12)
            page.insert_chart(len(sheet["rows"]) + 6, 0, _chart(book, title, sheet))
    return content.getvalue()


def _chart(book: Workbook, title: str, sheet: WorkbookSheet) -> Chart:
    """Lines over the columns, one per row; bars where there is only one column."""
    n_columns = len(sheet["columns"])
    chart = book.add_chart({"type": "line" if n_columns > 1 else "column"})
    assert chart is not None, "the kind of chart is one that there is"
    for row, (name, _) in enumerate(sheet["rows"], start=4):
        chart.add_series(
            {
                "name": str(name),
                "categories": [title, 3, 1, 3, n_columns],
                "values": [title, row, 1, row, n_columns],
            }
        )
    across, down = sheet["axes"]
    chart.set_title({"name": f"{sheet['title']}: one line per {down}"})
    chart.set_x_axis({"name": across})
    chart.set_y_axis({"name": sheet["unit"]})
    chart.set_size({"width": 840, "height": 420})
    return chart


def _write_name(page: Worksheet, place: tuple[int, int], name: str, style: Format) -> None:
    """Write a number, or a text as it is; never a formula."""
    if name.isdecimal():
        page.write_number(*place, int(name), style)
    else:
        page.write_string(*place, name, style)
