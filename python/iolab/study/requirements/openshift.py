"""Recommendation of OpenShift for etcd in clusters under heavy load."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.requirement import Criterion, Requirement, Source

OPENSHIFT: Final = Requirement(
    name="openshift-heavy",
    about="OpenShift: etcd in a cluster under heavy load",
    job="--name=openshift --rw=write --ioengine=sync --fdatasync=1 --size=64m --bs=8000"
    " --runtime={runtime}",
    timed_phases=1,
    criteria=(
        Criterion(
            "openshift",
            "flushes_per_s",
            "appends of 8000 bytes, each with fdatasync",
            limit=500.0,
        ),
    ),
    sources=(
        Source(
            "https://docs.redhat.com/en/documentation/openshift_container_platform/4.20/html/"
            "etcd/etcd-practices",
            "500 sequential writes of 8000 bytes per second, fdatasync included, are recommended"
            " for clusters under heavy load.",
            "2026-11-26",
        ),
        Source(
            "https://etcd.io/docs/v3.5/op-guide/hardware/",
            "500 sequential operations per second are recommended under heavy load.",
            "2026-11-26",
        ),
    ),
    differs="the documents give no job; this one does what their sentence says",
)
