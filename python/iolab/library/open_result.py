"""A stored study, read again."""

from __future__ import annotations

from pathlib import Path

from iolab.library.hints import in_python
from iolab.library.result import Result
from iolab.library.stored import load_stored


@in_python
def open(path: str | Path) -> Result:  # noqa: A001 - a verb of the library, as gzip.open
    """Read a stored study.

    Parameters
    ----------
    path : a results directory, its ``study.db``, or an archive (``NAME.iolab``); also of a study
        that still runs.

    Returns
    -------
    Result : what is stored now.

    Raises
    ------
    StoreError : there is a file, but no study that can be read.
    DamageError : a file was changed after it was stored.
    IolabError : nothing is there.
    """
    place = Path(path)
    return Result(load_stored(place), place)
