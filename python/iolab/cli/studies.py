"""Reading a study wherever it is: a directory, its database, an archive, or what is imported."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from iolab.cli.archive import is_archive, opened
from iolab.cli.console import Console
from iolab.cli.finish import find_database
from iolab.errors import IolabError
from iolab.store.db import STORE_NAME, Store
from iolab.store.rows import StudyData
from iolab.version import iolab_version

TABLE_SUFFIXES = (".csv", ".tsv")


def is_table(path: Path) -> bool:
    """Whether a path is meant as a table."""
    return path.suffix.lower() in TABLE_SUFFIXES


def check_table_flags(arguments: argparse.Namespace, paths: Sequence[str]) -> None:
    """Refuse flags that say how a table is to be understood where there is none.

    Raises
    ------
    IolabError : one was given in vain, or is not of its form.
    """
    from iolab.cli.import_ import wishes_of

    wishes_of(arguments)
    if all(_is_study(Path(path)) for path in paths):
        for name in ("map", "factor", "unit", "name", "compare", "baseline"):
            if value := getattr(arguments, name):
                shown = value[0] if isinstance(value, list) else value
                raise IolabError(
                    f"--{name} '{shown}' says how a table is to be read, and there is none here",
                    f"leave --{name} out",
                )


def _is_study(path: Path) -> bool:
    """Tell if a path is the one that a study was stored as."""
    is_database = path.suffix.lower() == Path(STORE_NAME).suffix
    return not is_table(path) and (path.is_dir() or is_database or is_archive(path))


def read_study(path: Path, arguments: argparse.Namespace, console: Console) -> StudyData:
    """Everything stored about a study; a table is imported for the moment.

    Raises
    ------
    IolabError : there is no study, or the table cannot be understood.
    """
    if is_table(path):
        return _read_table(path, arguments)
    if not path.exists():
        raise IolabError(
            f"{path} does not exist", "name a results directory, an archive or a CSV file"
        )
    if is_archive(path):
        with opened(path, console) as database:
            return _read(database)
    if path.is_file() and path.suffix.lower() != Path(STORE_NAME).suffix:
        return _read_table(path, arguments)
    return _read(find_database(path))


def _read(database: Path) -> StudyData:
    with Store.open_reader(database) as store:
        return store.load_data()


def _read_table(path: Path, arguments: argparse.Namespace) -> StudyData:
    from iolab.cli.import_ import wishes_of
    from iolab.imported.foreign.join import Named
    from iolab.imported.study import store_imported, understand_files

    imported = understand_files([Named(path)], wishes_of(arguments))
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        database = Path(folder) / "study" / STORE_NAME
        store_imported(imported, database, iolab_version())
        return _read(database)
