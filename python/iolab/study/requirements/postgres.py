"""Flushes of PostgreSQL's write-ahead log: figures without a limit."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.requirement import Criterion, Requirement, Source

POSTGRES: Final = Requirement(
    name="postgres",
    about="PostgreSQL: its write-ahead log, as pg_test_fsync measures it",
    job="--name=postgres --rw=write --ioengine=psync --fdatasync=1 --overwrite=1 --size=16m"
    " --bs=8k --time_based --runtime={runtime}",
    timed_phases=1,
    criteria=(
        Criterion(
            "postgres",
            "flushes_per_s",
            "writes of 8 KiB over old data, each with fdatasync",
            limit=None,
        ),
        Criterion(
            "postgres",
            "flush_ns_p99",
            "fdatasync after each write of 8 KiB",
            limit=None,
        ),
    ),
    sources=(
        Source(
            "https://www.postgresql.org/docs/current/pgtestfsync.html",
            "The program reports the mean time of a flush per method and gives no limit.",
            "2026-11-26",
        ),
    ),
    differs="only the method fdatasync, the default on Linux, is measured",
)
