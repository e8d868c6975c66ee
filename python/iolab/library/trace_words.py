"""Events of traces for the command line: the words that name them, and what they stand for."""

from __future__ import annotations

from iolab.study.names import TRACE_LAYERS, TRACE_SETS, EventsName
from iolab.study.trace_words import TraceEvents, typed_events

__all__ = ["TRACE_LAYERS", "TRACE_SETS", "EventsName", "TraceEvents", "typed_events"]
