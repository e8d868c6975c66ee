"""`iolab.readable`: waiting for files by poll(2)."""

from __future__ import annotations

import fcntl
import os
import resource

import pytest

from iolab.readable import wait_readable

HIGH = 1500
"""A descriptor that select(2) refuses."""


def test_a_descriptor_above_1023_can_be_waited_for() -> None:
    """A notebook with 1,024 open files got "filedescriptor out of range in select()"."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard <= HIGH:
        pytest.skip(f"no more than {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, HIGH + 1), hard))
    reader, writer = os.pipe()
    high = fcntl.fcntl(reader, fcntl.F_DUPFD, HIGH)
    try:
        assert wait_readable([high], 0.01) == []
        os.write(writer, b"x")
        assert wait_readable([high]) == [high]
    finally:
        for descriptor in (reader, writer, high):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_is_ready_is_told_in_order_and_an_end_is_ready() -> None:
    first, second = os.pipe(), os.pipe()
    try:
        with os.fdopen(second[0], "rb") as file:
            os.close(second[1])
            assert wait_readable([first[0], file], 5) == [file]
            os.write(first[1], b"x")
            assert wait_readable([file, first[0]], 5) == [file, first[0]]
    finally:
        os.close(first[0])
        os.close(first[1])
