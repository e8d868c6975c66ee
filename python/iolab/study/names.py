"""Names that may be typed for an engine, a knob, a test or events of a trace: `names.json` beside
this file, as typed rows.

That file is what ``iolab-agent names`` prints, written by `make docs`; its sources are the lists
of the Rust crates, so that an engine or a knob is added there and nowhere else. A copy is kept
because a study must be read and checked where no agent is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from iolab.frozen import frozen, replace

if TYPE_CHECKING:
    from iolab.protocol import Capabilities


@frozen
class EngineName:
    """An engine; an asynchronous one keeps several operations in flight.

    ``default_access`` is what its files are unless a workload asks otherwise: ``plain``, ``mapped``
    or ``stdio``.
    """

    name: str
    is_asynchronous: bool
    has_direct: bool
    has_vectors: bool
    has_flags: bool
    has_lock: bool
    is_polled: bool
    """Completions are polled for at the device."""
    has_submitter: bool
    """A thread of the kernel submits for each worker."""
    default_access: str
    abilities: Capabilities
    """All that its target says of itself: ``Capabilities`` of crates/iolab-model."""


@frozen
class KnobName:
    """A knob: one of its ``choices``, or a whole number where there are none.

    ``twin`` is another name for the same setting; ``former_choices`` are names of older kernels,
    each with what comes closest today; numbers that ``are_codes`` lie on no scale. ``example`` is a
    usual value and another one.
    """

    name: str
    twin: str | None
    help: str
    example: tuple[str, str]
    choices: tuple[str, ...]
    former_choices: tuple[tuple[str, str], ...]
    are_codes: bool
    time_constants_ns: tuple[tuple[str, int], ...] = ()
    """Choices that keep state, each with the longest time after which it acts upon it."""


@frozen
class TestName:
    """A test of IOzone: what it does, whatever it is called.

    ``access`` is None where the study chooses the way to the data; a test that ``has_own_calls``
    makes them so whatever engine is chosen; one that ``creates`` makes the file if there is none.
    """

    __test__: ClassVar[bool] = False

    name: str
    kind: str
    reads: bool
    writes: bool
    access: str | None
    has_own_calls: bool
    records_per_call: int
    creates: bool


@frozen
class EventsName:
    """Events that a trace may have: a set of block events, or another layer of the kernel.

    ``typed`` is the word of users.
    """

    name: str
    typed: str
    help: str


def _with_tuples(row: KnobName) -> KnobName:
    """JSON has lists where a row that never changes has tuples."""
    return replace(
        row,
        example=tuple(row.example),
        choices=tuple(row.choices),
        former_choices=tuple((name, today) for name, today in row.former_choices),
        time_constants_ns=tuple((name, value) for name, value in row.time_constants_ns),
    )


_TABLES: Final[dict[str, list[dict[str, Any]]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
ENGINES: Final = tuple(EngineName(**row) for row in _TABLES["engines"])
KNOBS: Final = tuple(_with_tuples(KnobName(**row)) for row in _TABLES["knobs"])
TESTS: Final = tuple(TestName(**row) for row in _TABLES["tests"])
TRACE_LAYERS: Final = tuple(EventsName(**row) for row in _TABLES["trace_layers"])
TRACE_SETS: Final = tuple(EventsName(**row) for row in _TABLES["trace_sets"])
"""Sets of block events; the first is the usual one."""
