"""Performance that a memory card for programs must have: class A1."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.requirement import Criterion, Requirement, Source

SD_CARD: Final = Requirement(
    name="sd-card-a1",
    about="a memory card that programs run from, as in a Raspberry Pi (application class A1)",
    job="--ioengine=libaio --iodepth=4 --direct=1 --end_fsync=1 --size=64m --filename=sd-card"
    " --stonewall --name=prepare --rw=write --bs=512k"
    " --name=in-order --rw=write --bs=512k --runtime={runtime}"
    " --name=writes --rw=randwrite --bs=4k --runtime={runtime}"
    " --name=reads --rw=randread --bs=4k --runtime={runtime}",
    timed_phases=4,
    criteria=(
        Criterion(
            "in-order",
            "write_bytes_per_s",
            "direct writes of 512 KiB in order, 4 at a time",
            limit=10e6,
        ),
        Criterion(
            "writes", "writes_per_s", "direct random writes of 4 KiB, 4 at a time", limit=500.0
        ),
        Criterion(
            "reads", "reads_per_s", "direct random reads of 4 KiB, 4 at a time", limit=1500.0
        ),
    ),
    sources=(
        Source(
            "https://www.sdcard.org/developers/sd-standard-overview/application-performance-class/",
            "The class is defined here: 10 MB/s in order, 500 random writes, 1,500 random reads per"
            " second, as the next source quotes it.",
            "2026-11-26",
        ),
        Source(
            "https://github.com/raspberrypi-ui/agnostics/blob/"
            "1dc4a426e3a2b75276c560b612123a8551b6c0e2/data/sdtest.sh",
            "The job, and the same limits, as Raspberry Pi Diagnostics applies them.",
            "2026-11-26",
        ),
    ),
    differs="the card is not brought into the state that the specification of the class asks for",
)
