"""fio's job options as levels: which of them say how something was measured."""

from __future__ import annotations

import re
from typing import Final

from iolab.study.operations import Access

_LABELS: Final = frozenset(
    (
        *("name", "description", "randseed", "stonewall", "new_group", "group_reporting"),
        *("wait_for", "startdelay", "exec_prerun", "exec_postrun", "unlink", "unlink_each_loop"),
        *("per_job_logs", "log_offset", "log_prio", "log_max_value", "log_unix_epoch"),
        *("log_avg_msec", "log_entries", "log_hist_msec", "log_hist_coarseness", "log_alternate_"),
        *("log_compression", "log_store_compressed", "log_compression_cpus", "disk_util"),
        *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog"),
        *("bwavgtime", "iopsavgtime", "percentile_list", "clat_percentiles", "lat_percentiles"),
        *("slat_percentiles", "significant_figures", "kb_base", "unit_base", "json", "eta"),
        *("unified_rw_reporting", "stats", "verify_state_save", "thread", "size_of_output"),
    )
)
"""Options that name, order or print, but do not change what is measured."""
_OTHER_NAMES: Final = {"io_size": "io_limit", "ioscheduler": "scheduler", "readwrite": "rw"}
"""Options that go by another name of theirs, since theirs means something else in a study."""
_SIZE: Final = re.compile(r"(\d{1,12})([kmgt]?)b?", re.IGNORECASE)
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SUFFIXES: Final = (("t", 40), ("g", 30), ("m", 20), ("k", 10))
_MAPPED: Final = "mmap"


def about_options(options: dict[str, str]) -> dict[str, str]:
    """Options that say how something was measured, in one spelling.

    Blocks of one size are `bs`, all others `block_sizes`.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        if name in _LABELS:
            continue
        if name in ("bs", "blocksize"):
            size = size_of(value)
            found["bs" if size else "block_sizes"] = size_text(size) if size else value
        elif name == "buffered":
            found["direct"] = "0" if value.strip() in ("", "1") else "1"
        else:
            found[_OTHER_NAMES.get(name, name)] = value.strip() or "1"
    return found


def size_of(text: str) -> int | None:
    """Bytes of a plain size; None for lists, ranges and what is no size."""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) << _SHIFTS[match[2].lower()] if match else 0
    return size if 0 < size < 1 << 50 else None


def size_text(size: int) -> str:
    """A size in its fewest digits: 4096 is 4k."""
    for suffix, shift in _SUFFIXES:
        if size % (1 << shift) == 0:
            return f"{size >> shift}{suffix}"
    return str(size)


def access_of(options: dict[str, str] | None) -> Access | None:
    """The way to the data that options ask for; None where they are not known."""
    if options is None:
        return None
    if options.get("ioengine", "") == _MAPPED:
        return "mapped"
    return "direct" if about_options(options).get("direct", "0") == "1" else "plain"
