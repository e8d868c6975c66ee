"""A stored study, looked at again and again while it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from iolab.errors import AnalysisError
from iolab.library.services import Services
from iolab.library.stored import find_database, is_archive, opened
from iolab.report.live import LevelLine, LiveState, live_state, live_text, ratio_text
from iolab.store.db import Store
from iolab.store.lock import is_held
from iolab.store.read import without_collecting

__all__ = ["LevelLine", "LiveState", "Watched", "live_text", "ratio_text"]
_SHARE_MAX: Final = 10
"""Looks may take a tenth of the time: reading a large study must not disturb it."""


class Watched:
    """A study that is watched.

    Parameters
    ----------
    results : a results directory, its database or an archive.
    means : the statistics.
    """

    def __init__(self, results: Path, means: Services) -> None:
        self._results, self._means = results, means
        self._is_checked = False
        self._took_s = 0.0

    def look(self) -> LiveState:
        """Read what is stored now.

        The first look checks that nothing is damaged; later ones read only.

        Raises
        ------
        StoreError : there is no study that can be read.
        """
        began = time.monotonic()
        if is_archive(self._results):
            with opened(self._results, lambda _: None) as database:
                return self._state(database, is_running=False, directory=None)
        database = find_database(self._results)
        is_running = is_held(database)  # Before reading: what ends in between is read at its end.
        state = self._state(database, is_running=is_running, directory=database.parent)
        self._took_s = time.monotonic() - began
        return state

    def pause_s(self, wanted_s: float) -> float:
        """Seconds until the next look: as wanted, and ten times as long as the last one took."""
        return max(wanted_s, _SHARE_MAX * self._took_s)

    def _state(self, database: Path, *, is_running: bool, directory: Path | None) -> LiveState:
        is_checked, self._is_checked = not self._is_checked, True
        with (
            without_collecting(),
            Store.open_reader(database, is_checked=is_checked) as store,
        ):
            data = store.load_data()
            try:
                verdict = self._means.judge(data)
            except AnalysisError:  # Nothing is finished yet.
                verdict = None
            return live_state(data, verdict, is_running=is_running, directory=directory)
