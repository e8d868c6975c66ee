"""Other programs' output or a table, stored as a study that can be judged like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iolab.frozen import frozen
from iolab.imported.foreign.join import parse_argument
from iolab.imported.study import store_imported, understand_files
from iolab.library.tables import TableWords
from iolab.run.options import OUTPUT_ROOT
from iolab.run.outputs import check_free, fresh_directory, reports_in
from iolab.store.db import STORE_NAME
from iolab.store.users_files import Allowed
from iolab.version import iolab_version


@frozen
class ImportedStudy:
    """A study that was imported and stored."""

    path: Path
    """Its directory."""
    renamed: tuple[tuple[str, str], ...]
    """Each column whose factor has another name, with that name."""
    checked_means: str
    """Result of checking the means that a table printed; empty if it printed none."""
    notes: tuple[str, ...] = ()
    """Sentences about what was passed over."""


def import_files(
    files: Sequence[str],
    words: TableWords,
    out: Path | None,
    overwrite: tuple[str, ...] = (),
    root: Path = OUTPUT_ROOT,
) -> ImportedStudy:
    """Understand the whole table first, then store it.

    Parameters
    ----------
    files : what fio, iozone or bonnie++ wrote, each as ``[LEVEL=]FILE``; or one CSV table.
    words : how a table is to be read.
    out : the directory to make; None is ``NAME-N`` below `root`.
    overwrite : files of the user's own that a report of it will be allowed to replace.
    root : directory for results without a place of their own.

    Raises
    ------
    IolabError : the files cannot be understood.
    StudyError, RefusedError : the directory cannot take a study.
    """
    imported = understand_files([parse_argument(text) for text in files], words.wishes())
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in imported.plan.study.name)
    folder = fresh_directory(name, root) if out is None else out
    check_free(folder)
    Allowed.of(overwrite).refuse_useless(reports_in(folder))
    store_imported(imported, folder / STORE_NAME, iolab_version())
    factors = imported.reading.mapping.factors
    renamed = tuple((one.column, one.name) for one in factors if one.name != one.column)
    notes = imported.reading.table.notes
    return ImportedStudy(folder, renamed, imported.checked.text, notes)
