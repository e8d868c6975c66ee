"""One verdict over the stored studies of several hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from iolab import units
from iolab.errors import IolabError
from iolab.library.stored import opened
from iolab.stats.fleet import FleetVerdict, NamedHost, judge_fleet
from iolab.store.db import STORE_NAME, Store

Note = Callable[[str], None]


def read_fleet(typed: Sequence[str], margin: str, note: Note) -> FleetVerdict:
    """Read the study of each host, and judge them together.

    Parameters
    ----------
    typed : results directories or archives, each as ``PATH`` or ``HOST=PATH``; a directory of
        such directories, as ``iolab run --hosts`` makes it, stands for all of them.
    margin : smallest difference that matters, as in ``3%``; empty: that of the study.
    note : hears of what an archive says of itself.

    Raises
    ------
    IolabError : a study cannot be read, or a name or the margin is not right.
    AnalysisError : the studies are not one.
    """
    wanted = None
    if margin:
        try:
            wanted = units.parse_share(margin)
        except ValueError as error:
            raise IolabError(f"--margin: {error}", "as in --margin 3%") from None
    return read_named([place for text in typed for place in _places(text)], wanted, note)


def read_named(
    places: Sequence[tuple[str, Path]], margin: float | None, note: Note
) -> FleetVerdict:
    """Read the study of each host, given by name and place, and judge them together.

    Raises
    ------
    IolabError : a study cannot be read, or two have one name.
    AnalysisError : the studies are not one.
    """
    hosts: list[NamedHost] = []
    for name, path in places:
        if name in {one.name for one in hosts}:
            raise IolabError(f"two studies are named {name}", "name hosts: HOST=DIR")
        with opened(path, note) as database, Store.open_reader(database) as store:
            hosts.append(NamedHost(name, store.load_data()))
    return judge_fleet(hosts, margin)


def printed(fleet: FleetVerdict, width: int = 80) -> str:
    """Write a fleet's answer as text, in lines of `width` columns."""
    from iolab.report.fleet_text import fleet_text

    return fleet_text(fleet, width)


def _places(text: str) -> list[tuple[str, Path]]:
    """Hosts and places of their studies that one word of the command line stands for."""
    name, path = _named(text)
    databases = [] if (path / STORE_NAME).exists() else sorted(path.glob(f"*/{STORE_NAME}"))
    return [(found.parent.name, found.parent) for found in databases] or [(name, path)]


def _named(text: str) -> tuple[str, Path]:
    """Host and place of its study; a directory that is there is never a name."""
    name, equals, place = text.partition("=")
    if equals and name and place and not Path(text).exists():
        return name, Path(place)
    path = Path(text)
    return path.name or text, path
