"""Class of a cell by what it measures, in one word: only cells of one class are pooled.

A mean over reads and writes, memory and device, real and processor time can say the opposite of
each. The class is that of the operation (:func:`class_of_cell` is the only place that decides it),
and `memory` where most bytes never reached the device, or went through the buffers of the C
library: such cells compare memory, whatever the operation.

Of a measured study the records say what an operation is, and so do programs that echo their
options. Of other imported tables only what its columns are called is known: it is read as people
would read it, once, here.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Kind = Literal["real", "simulated", "imported"]
MEMORY: Final = "memory"
ELAPSED: Final = "elapsed time"
PROCESSOR: Final = "processor time"
MIXED: Final = "mixed"
_ASIDE: Final = (MEMORY, PROCESSOR)
"""Classes that carry no headline where another one can."""
_PARENT: Final = "as the parent sees them"

Nature = tuple[str | None, str | None]
"""Kind of an operation and its way to the data, as the store has them; None is not known."""
UNKNOWN: Final[Nature] = (None, None)
_CLASSES: Final = {
    "read": "reads",
    "write": "writes",
    "sync": "flushes",
    "name": "names",
    "key_value": "keys",
}
"""Class of each kind of operation; of all others `MIXED`."""

_STDIO: Final = re.compile(r"\bf(re)?(read|write)\b")
_READ: Final = re.compile(r"\b(re|p|f)*(read(er|v)?s?)\b|\bget\b|\bin(put)?\b")
_WRITE: Final = re.compile(r"writ|\bout(put)?\b|\bput\b|\bcreate|\bupdate|\binsert|mkfile|\bsync\b")
_PROCESSOR: Final = re.compile(r"\b(user|sys|system|cpu|processor|kernel)\b")
_ELAPSED: Final = re.compile(r"\b(real|elapsed|wall|total)\b")
_PARENTS: Final = re.compile(r"\bparents?\b")
_WORD_BREAK: Final = re.compile(r"[_\W]+")


def class_of_cell(
    operation: str,
    *,
    kind: Kind,
    nature: Nature = UNKNOWN,
    metric_is_time: bool = False,
    is_cached: bool = False,
) -> str:
    """Name the class of a cell.

    Parameters
    ----------
    operation : what was done, as the study or the table calls it.
    kind : of the study.
    nature : what the operation is, of a measured study or of a program that says it.
    metric_is_time : whether the value is the time of a whole run.
    is_cached : whether most bytes of the cell never reached the device, at any of its levels.
    """
    if kind == "imported" and nature[0] is None:
        return _of_column(operation, metric_is_time=metric_is_time, is_cached=is_cached)
    does, access = nature
    if is_cached or access == "stdio":
        return MEMORY
    return _CLASSES.get(does or "", MIXED)


def _of_column(operation: str, *, metric_is_time: bool, is_cached: bool) -> str:
    text = _WORD_BREAK.sub(" ", operation).strip().lower()
    if metric_is_time and _PROCESSOR.search(text):
        return PROCESSOR
    if metric_is_time and _ELAPSED.search(text):
        return ELAPSED
    if is_cached or _STDIO.search(text):
        found = MEMORY
    else:
        reads, writes = bool(_READ.search(text)), bool(_WRITE.search(text))
        found = MIXED if reads and writes else "reads" if reads else "writes" if writes else "other"
    return f"{found} {_PARENT}" if _PARENTS.search(text) else found


def is_aside(name: str) -> bool:
    """Say whether a class gives way to any other as the headline."""
    return name in _ASIDE or name.endswith(_PARENT)


def class_of_stream(operation: str) -> str:
    """Name the class of a stream's percentiles: those of different streams are never averaged."""
    return f"stream {operation.rpartition('/')[2]}"
