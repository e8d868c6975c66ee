"""Studies to be compared: stored ones, and tables that are imported for the moment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.stored import find_database, is_archive, opened
from iolab.store.db import STORE_NAME, Store
from iolab.store.rows import StudyData
from iolab.version import iolab_version

if TYPE_CHECKING:
    from iolab.imported.mapping import Wishes

TABLE_SUFFIXES: Final = (".csv", ".tsv")


@frozen
class TableWords:
    """Words of the command line about how a table is to be read."""

    map: tuple[str, ...] = ()
    """``ROLE=COLUMN``: the column of a role."""
    factor: tuple[str, ...] = ()
    """``COLUMN[=NAME]``: a column whose values are levels; none is every other that varies."""
    unit: str = ""
    """Unit of a table without one."""
    name: str = ""
    """Name of the study."""
    compare: str = ""
    """Factor to be ranked."""
    baseline: str = ""
    """Level that ratios are formed against."""
    margin: str = "5%"
    """Smallest difference that matters."""

    @property
    def margin_share(self) -> float:
        """The margin as a share of 1.

        Raises
        ------
        IolabError : it is none.
        """
        try:
            return units.parse_share(self.margin)
        except ValueError as error:
            raise IolabError(f"--margin: {error}") from None

    def wishes(self) -> Wishes:
        """Wishes that the words mean.

        Raises
        ------
        IolabError : one is not of its form.
        """
        from iolab.imported.mapping import Wishes

        columns = dict(_pair(text, "--map", "ROLE=COLUMN") for text in self.map)
        factors = dict[str, str]()
        for text in self.factor:
            column, _, name = text.partition("=")
            factors[column] = name or column
        return Wishes(
            columns, factors, self.unit, self.name, self.compare, self.baseline, self.margin_share
        )

    def refuse_in_vain(self, paths: Sequence[str]) -> None:
        """Refuse words about a table where none of the paths is one.

        Raises
        ------
        IolabError : one was given in vain, or is not of its form.
        """
        self.wishes()
        if not all(_is_study(Path(path)) for path in paths):
            return
        given = {"map": self.map[:1], "factor": self.factor[:1], "unit": (self.unit,)}
        given |= {"name": (self.name,), "compare": (self.compare,), "baseline": (self.baseline,)}
        for name, values in given.items():
            if any(values):
                raise IolabError(
                    f"--{name} '{values[0]}' says how a table is to be read, and there is none "
                    "here",
                    f"leave --{name} out",
                )


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    left, sign, right = text.partition("=")
    if not sign or not left or not right:
        raise IolabError(f"{flag} {text}: not of the form {form}", f"write {flag} value=mbps")
    return left, right


def _is_table(path: Path) -> bool:
    """Tell if a path is meant as a table."""
    return path.suffix.lower() in TABLE_SUFFIXES


def _is_study(path: Path) -> bool:
    """Tell if a path is the one that a study was stored as."""
    is_database = path.suffix.lower() == Path(STORE_NAME).suffix
    return not _is_table(path) and (path.is_dir() or is_database or is_archive(path))


def read_study(path: Path, words: TableWords, note: Callable[[str], None]) -> StudyData:
    """Everything stored about a study; a table is imported for the moment.

    Parameters
    ----------
    path : a results directory, its database, an archive or a table.
    words : how a table is to be read.
    note : hears of what an archive says of itself.

    Raises
    ------
    IolabError : there is no study, or the table cannot be understood.
    """
    if _is_table(path):
        return _read_table(path, words)
    if not path.exists():
        raise IolabError(
            f"{path} does not exist", "name a results directory, an archive or a CSV file"
        )
    if is_archive(path):
        with opened(path, note) as database:
            return _read(database)
    if path.is_file() and path.suffix.lower() != Path(STORE_NAME).suffix:
        return _read_table(path, words)
    return _read(find_database(path))


def _read(database: Path) -> StudyData:
    with Store.open_reader(database) as store:
        return store.load_data()


def _read_table(path: Path, words: TableWords) -> StudyData:
    from iolab.imported.foreign.join import Named
    from iolab.imported.study import store_imported, understand_files

    imported = understand_files([Named(path)], words.wishes())
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        database = Path(folder) / "study" / STORE_NAME
        store_imported(imported, database, iolab_version())
        return _read(database)
