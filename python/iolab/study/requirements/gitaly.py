"""Requirement of GitLab on the disk of its repositories."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.requirement import Criterion, Requirement, Source

GITALY: Final = Requirement(
    name="gitaly",
    about="GitLab: the repositories of a Gitaly server",
    job="--name=gitaly --rw=randrw --rwmixread=75 --ioengine=libaio --direct=1 --iodepth=64"
    " --bs=4k --size=256m --time_based --runtime={runtime}",
    timed_phases=1,
    criteria=(
        Criterion(
            "gitaly",
            "reads_per_s",
            "direct random reads of 4 KiB, beside the writes, 64 at a time",
            limit=8000.0,
        ),
        Criterion(
            "gitaly",
            "writes_per_s",
            "direct random writes of 4 KiB, beside the reads",
            limit=2000.0,
        ),
    ),
    sources=(
        Source(
            "https://docs.gitlab.com/ee/administration/gitaly/#disk-requirements",
            "At least 8,000 reads and 2,000 writes per second, as a first recommendation.",
            "2026-11-26",
        ),
        Source(
            "https://docs.gitlab.com/ee/administration/operations/filesystem_benchmarking.html",
            "The job: reads and writes of 4 KiB, 75 % reads, 64 at a time, direct.",
            "2026-11-26",
        ),
    ),
    differs="the file has 256 MiB instead of 4 GiB, so that a round begins within its time",
)
