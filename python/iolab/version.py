"""The version of this installation, without the library that reads package data.

`importlib.metadata` imports the parsers of mail, which take longer than everything else that
``iolab --version`` does; the name of the folder it would read says the same.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import Final

UNINSTALLED: Final = "0.1.0+source"
_FOLDER: Final = ("iolab-", ".dist-info")


@cache
def iolab_version() -> str:
    """Version of the installed package; of sources that were never installed, `UNINSTALLED`."""
    before, after = _FOLDER
    for folder in sys.path:
        # No directory: an archive, or a place that is not there.
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.startswith(before) and entry.name.endswith(after):
                    return entry.name.removeprefix(before).removesuffix(after)
    return UNINSTALLED
