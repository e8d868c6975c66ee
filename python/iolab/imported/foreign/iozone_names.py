"""IOzone's names for its tests, in the three places where it prints them, and ours.

Source: output of IOzone 3.489 and of its older releases, recorded.
"""

from __future__ import annotations

from typing import Final

TOOL: Final = "iozone"
COLUMNS: Final = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
)
"""Meaning of the first columns after the sizes; later ones are named by their own heads."""
HEADS: Final = (
    "fwrite",
    "frewrite",
    "fread",
    "freread",
    "pwrite",
    "repwrite",
    "pread",
    "repread",
    "pwritev",
    "repwritev",
    "preadv",
    "repreadv",
)
NOUNS: Final = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "reverse readers": "backward-read",
    "stride readers": "stride-read",
    "random readers": "random-read",
    "mixed workload": "mix",
    "random writers": "random-write",
    "pwrite writers": "pwrite",
    "pread readers": "pread",
    "fwriters": "fwrite",
    "freaders": "fread",
}
"""Lines ``Children see throughput for N ...`` of the throughput mode."""
REPORTS: Final = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random-read",
    "random write": "random-write",
    "backward read": "backward-read",
    "record rewrite": "record-rewrite",
    "stride read": "stride-read",
    "fwrite": "fwrite",
    "re-fwrite": "frewrite",
    "fread": "fread",
    "re-fread": "freread",
    "pwrite": "pwrite",
    "re-pwrite": "repwrite",
    "pread": "pread",
    "re-pread": "repread",
}
"""Titles of the spreadsheet reports, folded, without the word report."""
ROWS: Final = {
    "initial write": "write",
    "rewrite": "rewrite",
    "read": "read",
    "re-read": "reread",
    "reverse read": "backward-read",
    "stride read": "stride-read",
    "random read": "random-read",
    "mixed workload": "mix",
    "random write": "random-write",
    "pwrite": "pwrite",
    "pread": "pread",
    "fwrite": "fwrite",
    "fread": "fread",
}
"""Rows of the throughput report, folded."""
STDIO: Final = ("fwrite", "frewrite", "fread", "freread")


def note_of(operation: str, *, is_direct: bool) -> str:
    """Note about a number, beside its value; empty for nothing."""
    if is_direct and operation in STDIO:
        return "through the page cache: iozone's -I does not reach fwrite and fread"
    return ""


def operation_name(operation: str, unit: str) -> str:
    """Name of the operation for a value in `unit`: a time is elapsed time by operations."""
    return f"{operation} (time per op)" if unit == "us" else operation
