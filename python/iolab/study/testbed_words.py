"""A testbed as it is typed: ``loop:1g``, or ``loop:1g,backup=loop:2g`` with further places."""

from __future__ import annotations

from typing import Final

from iolab.pattern import pattern
from iolab.study.model import TestbedRequest

PLACES: Final = "places"
"""Option of a testbed that holds its further places, as typed."""
_PLACE: Final = pattern(r",(?=[A-Za-z0-9_-]+=[a-z]+(?:[:,]|$))")


def testbed_request(text: str) -> TestbedRequest:
    """The testbed of ``KIND[:ARGUMENT][,NAME=KIND[:ARGUMENT]...]``, as typed."""
    main, *places = _PLACE.split(text)
    kind, _, argument = main.partition(":")
    options = ((PLACES, ",".join(places)),) if places else ()
    return TestbedRequest("dir" if kind == "directory" else kind, argument, options)
