"""Layouts of ``iolab iostat``, as its flags choose them."""

from __future__ import annotations

import argparse

from iolab.frozen import frozen
from iolab.library import disk_tables
from iolab.library.disk_counters import Figures


@frozen
class ReportLayout:
    """Layout of a report of stored intervals."""

    flags: argparse.Namespace

    @property
    def trial(self) -> str | None:
        """The only trial that is wanted."""
        return self.flags.trial

    @property
    def is_json(self) -> bool:
        """Tell whether it is data, not a table."""
        return bool(self.flags.output)

    @property
    def is_solaris(self) -> bool:
        """Tell whether it is Solaris' layout."""
        return bool(self.flags.solaris)

    @property
    def has_names_last(self) -> bool:
        """Tell whether Solaris' layout has names in the last column."""
        return bool(self.flags.n)

    @property
    def columns(self) -> tuple[disk_tables.Column, ...]:
        """Columns of a Linux layout."""
        return columns_of(self.flags)

    def row(self, of: Figures) -> disk_tables.Row:
        """Values of a Linux layout."""
        return row_of(self.flags, of)


def columns_of(flags: argparse.Namespace) -> tuple[disk_tables.Column, ...]:
    """Columns of a Linux layout."""
    unit = "MB" if flags.m else "kB"
    if not flags.x:
        return disk_tables.plain_columns(unit, is_short=flags.s)
    return disk_tables.short_columns(unit) if flags.s else disk_tables.extended_columns(unit)


def row_of(flags: argparse.Namespace, of: Figures) -> disk_tables.Row:
    """Values of a Linux layout."""
    if not flags.x:
        return disk_tables.plain_row(of, is_mb=flags.m)
    row = disk_tables.short_row if flags.s else disk_tables.extended_row
    return row(of, is_mb=flags.m)
