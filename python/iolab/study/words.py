"""Words of a command line, as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

_PREFIX = "--iolab-"
"""Before the name of an option of iolab, so that it is never one of the dialect."""

PAST_THE_CACHE: Final = {"iozone": "-I", "bonnie++": "-D"}
"""Option of each dialect for direct I/O, where it has one."""


def without_options(
    words: Sequence[str],
    with_value: Collection[str],
    flags: Collection[str] = (),
    switches: Collection[str] = (),
) -> list[str]:
    """Words without some options.

    Parameters
    ----------
    with_value : options that go with the word behind them, or with what stands behind their ``=``.
    flags : options that have no value.
    switches : those of them that are the dialect's own where they stand alone, or with 0 or 1.
    """
    found = list[str]()
    is_value = False
    for index, word in enumerate(words):
        name, is_attached, value = word.partition("=")
        if name.startswith(_PREFIX):
            name = f"--{name.removeprefix(_PREFIX)}"
        elif name in switches:
            following = words[index + 1] if index + 1 < len(words) else ""
            meant = value if is_attached else following
            if not is_value and (meant in ("", "0", "1") or meant.startswith("-")):
                found.append(word)
                continue
        if is_value:
            is_value = False
        elif name in with_value:
            is_value = not is_attached
        elif name not in flags or is_attached:
            found.append(word)
    return found
