"""One metric over stored studies, as text, as data and as a file with a chart."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from iolab import units
from iolab.errors import IolabError, StoreError
from iolab.frozen import frozen
from iolab.library.drawn_file import check_ending, content_of
from iolab.library.stored import is_stored
from iolab.library.tables import TableWords, read_study
from iolab.stats.history import MetricHistory, NamedStudy, history_of
from iolab.store.db import STORE_NAME
from iolab.store.rows import StudyData
from iolab.store.users_files import Allowed, refuse_foreign, write_file
from iolab.study.metric_names import parse_metric

Note: TypeAlias = Callable[[str], None]


@frozen
class HistoryQuestion:
    """Question of a history."""

    paths: tuple[str, ...]
    """Results directories, archives, tables, or folders of results directories."""
    metric: str = ""
    """Name or short form; empty: the one that the newest study is judged by."""
    only: str = ""
    """Text that the names of the cells contain; empty: all cells."""
    margin: str = ""
    """Smallest change that matters, as in ``3%``; empty: that of the newest study."""


def read_history(asked: HistoryQuestion, note: Note) -> MetricHistory:
    """Read the studies, and find which are comparable and where the metric changed.

    Parameters
    ----------
    note : hears of what an archive says of itself.

    Raises
    ------
    IolabError : there are fewer than two studies, or no such metric.
    """
    metric, margin = _metric(asked.metric), _margin(asked.margin)
    words = TableWords()
    studies = [
        NamedStudy(str(path), study)
        for path, is_found in _studies(asked.paths, note)
        if (study := _read(path, words, note, is_found=is_found)) is not None
    ]
    if len(studies) < 2:
        named = ", ".join(dict.fromkeys(asked.paths))
        n_found = "one" if studies else "none"
        raise IolabError(
            f"a history needs at least two different studies, and there is {n_found} in {named}",
            "name results directories, or a folder that holds some, such as iolab-out",
        )
    return history_of(studies, metric, margin, asked.only)


def printed(history: MetricHistory, width: int = 80) -> str:
    """Write a history as text, in lines of `width` columns."""
    from iolab.report.history_text import history_text

    return history_text(history, width)


def write_history(
    history: MetricHistory, asked: HistoryQuestion, out: Path, overwrite: Sequence[str]
) -> None:
    """Draw a history into a file that ends in ``.html``, ``.svg`` or ``.png``.

    Raises
    ------
    RefusedError : something that is not iolab's has the name.
    IolabError : the file cannot be written, or there is nothing to draw.
    """
    from iolab.report.chart_files import plain_svg
    from iolab.report.history_chart import history_chart, history_page

    check_ending(out)
    if not history.groups:
        raise IolabError(
            f"{out} is not written: no two of these studies are comparable",
            "see above why, and name others",
        )
    allowed = Allowed.of(overwrite)
    allowed.refuse_useless([out])
    refuse_foreign([out], allowed)
    spec = history_chart(history)
    words = ["iolab", "history", *asked.paths]
    for name in ("metric", "only", "margin"):
        typed = getattr(asked, name)
        words += [f"--{name}", typed] if typed else []
    again = shlex.join([*words, "--out", str(out)])
    content = content_of(
        out, lambda: history_page(history, spec, again), lambda: plain_svg(spec, spec.caption)
    )
    try:
        write_file(out, content, allowed)
    except OSError as error:
        raise IolabError(
            f"the history cannot be written to {out}: {error.strerror}", "name another place"
        ) from None


def _metric(typed: str) -> str | None:
    if not typed:
        return None
    try:
        return parse_metric(typed)
    except ValueError as error:
        raise IolabError(f"--metric: {error}", "as in --metric p99") from None


def _margin(typed: str) -> float | None:
    if not typed:
        return None
    try:
        return units.parse_share(typed)
    except ValueError as error:
        raise IolabError(f"--margin: {error}", "as in --margin 3%") from None


def _read(path: Path, words: TableWords, note: Note, *, is_found: bool) -> StudyData | None:
    """Read a study; none of a foreign database that was found in a folder."""
    try:
        return read_study(path, words, note)
    except IolabError as error:
        if not is_found or path.suffix != Path(STORE_NAME).suffix:
            raise
        note(f"iolab: note: {error.message}: it is left out")
        return None


def _studies(paths: Sequence[str], note: Note) -> Iterator[tuple[Path, bool]]:
    """Each study once, and whether it was found in a folder, which stands for those in it."""
    seen = set[Path]()
    for text in paths:
        path = Path(text)
        is_folder = _is_folder(path)
        for place in _inside(path, note) if is_folder else [path]:
            if place.resolve() in seen:
                note(f"iolab: note: {place} is named twice, and counts once")
                continue
            seen.add(place.resolve())
            yield place, is_folder


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not is_stored(path) and not os.path.lexists(path / STORE_NAME)


def _inside(folder: Path, note: Note) -> list[Path]:
    """Studies in a folder; those that cannot be read as one are told.

    Raises
    ------
    StoreError : there is none, or the folder cannot be listed.
    """
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}", "name another folder") from None
    found = list[Path]()
    for child in children:
        try:
            if is_stored(child):
                found.append(child)
            elif os.path.lexists(child / STORE_NAME):
                note(f"iolab: note: {child} is left out: its {STORE_NAME} is not a regular file")
        except OSError as error:
            note(f"iolab: note: {child} is left out: {error.strerror}")
    if not found:
        raise StoreError(
            f"there is no study in {folder}", "name a results directory, or a folder of them"
        )
    return found
