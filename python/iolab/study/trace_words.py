"""Events that a trace is to have, in the words of users: ``block,syscalls,ext4``.

The words are those of the lists in Rust (`names.json`). Left out: recording them, and whether a
kernel has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.study.names import TRACE_LAYERS, TRACE_SETS
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.protocol import EventSet, KernelLayer

ALL_BLOCK_EVENTS: Final = "block"
"""Word for all block events, beside the name of that set."""
_SETS: Final = {
    ALL_BLOCK_EVENTS: TRACE_SETS[0].name,
    **{row.typed: row.name for row in TRACE_SETS},
}
_LAYERS: Final = {row.typed: row.name for row in TRACE_LAYERS}
TRACE_WORDS: Final = (*_SETS, *_LAYERS)
"""Every word that may be typed."""


@frozen
class TraceEvents:
    """Events of a trace: a set of block events, and other layers of the kernel."""

    block: EventSet = "full"
    layers: tuple[KernelLayer, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words that give it back."""
        typed = {name: word for word, name in reversed(_SETS.items())}
        layers = {name: word for word, name in _LAYERS.items()}
        return (typed[self.block], *(layers[name] for name in self.layers))

    @property
    def is_usual(self) -> bool:
        """Tell whether it is all block events, and nothing else."""
        return self == TraceEvents()


def trace_events(words: Sequence[str], place: str) -> TraceEvents:
    """The events that words stand for; where no set of block events is named, it is all of them.

    Parameters
    ----------
    words : names of sets and layers.
    place : flag or key and what was typed, for messages.

    Raises
    ------
    IolabError : a word is unknown, or two sets are named; lists those that are known.
    """
    sets: list[str] = []
    layers: list[str] = []
    for word in (word.strip() for word in words):
        if word in _SETS:
            sets.append(_SETS[word])
        elif word in _LAYERS:
            layers.append(_LAYERS[word])
        else:
            raise IolabError(
                f"{place}: '{word}' is unknown{nearest(word, TRACE_WORDS)}",
                f"there are {', '.join(TRACE_WORDS)}",
            )
    if len(set(sets)) > 1:
        raise IolabError(
            f"{place}: block events are either all or only some",
            f"name one of {', '.join(_SETS)}",
        )
    return TraceEvents(
        cast("EventSet", sets[0] if sets else TRACE_SETS[0].name),
        tuple(cast("KernelLayer", name) for name in dict.fromkeys(layers)),
    )


def typed_events(text: str, flag: str) -> TraceEvents:
    """The events of a list with commas, typed with a flag; raises as :func:`trace_events`."""
    return trace_events(text.split(","), f"{flag} {text}")
