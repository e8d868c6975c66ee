"""Requirement of etcd on the disk of its write-ahead log."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.requirement import Criterion, Requirement, Source

ETCD: Final = Requirement(
    name="etcd",
    about="etcd: its write-ahead log, and so the control plane of a Kubernetes cluster",
    job="--name=etcd --rw=write --ioengine=sync --fdatasync=1 --size=22m --bs=2300"
    " --runtime={runtime}",
    timed_phases=1,
    criteria=(
        Criterion(
            "etcd",
            "flush_ns_p99",
            "fdatasync after each append of 2300 bytes",
            limit=10e6,
        ),
    ),
    sources=(
        Source(
            "https://etcd.io/docs/v3.5/faq/",
            "The 99th percentile of the time of a flush of the log should be less than 10 ms.",
            "2026-11-26",
        ),
        Source(
            "https://www.ibm.com/cloud/blog/"
            "using-fio-to-tell-whether-your-storage-is-fast-enough-for-etcd",
            "The job that is widely used: 22 MiB of appends of 2300 bytes, each with fdatasync.",
            "2026-11-26",
        ),
    ),
    differs="the job is repeated in rounds, and a round ends early when its share of the time is"
    " over",
)
