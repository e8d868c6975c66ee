"""Labels on few columns: text is left out where labels agree, never where they differ.

Labels are shortened as a set. What all of them begin and end with may go; if what is between is
still too long, each keeps the words at which it first differs from any other, and as much of the
rest as there is room for. A set of distinct labels stays distinct; where the differences themselves
need more room than there is, a label is wider than asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Final

ELLIPSIS: Final = "…"
_WORDS: Final = re.compile(r"\w+|\W")
_Parts = tuple[str, ...]


def fitted(labels: Sequence[str], room: int) -> list[str]:
    """Shorten labels that stand beside each other.

    Parameters
    ----------
    labels : as they are; equal ones stay equal.
    room : characters that each may have.

    Returns
    -------
    One text per label, in order.
    """
    distinct = list(dict.fromkeys(labels))
    if all(len(label) <= room for label in distinct):
        return list(labels)
    if len(distinct) == 1:
        return [_middle_cut(label, room) for label in labels]
    shown = _shortened(distinct, room, lambda text: tuple(_WORDS.findall(text)))
    tight = [text for text in distinct if len(shown[text]) > room]
    if tight:  # Single words longer than the room: look at their letters.
        letters = _shortened(distinct, room, tuple)
        shown |= {text: min(letters[text], shown[text], key=len) for text in tight}
    seen = set[str]()
    for text in distinct:
        if shown[text] in seen or (shown[text] != text and shown[text] in shown):
            return list(labels)
        seen.add(shown[text])
    return [shown[label] for label in labels]


def _shortened(labels: Sequence[str], room: int, split: Callable[[str], _Parts]) -> dict[str, str]:
    parts = {label: split(label) for label in labels}
    before = _common([list(p) for p in parts.values()])
    least = min(len(p) for p in parts.values())
    after = min(_common([list(reversed(p)) for p in parts.values()]), least - before)
    forks = _forks(list(parts.values()))
    found: dict[str, str] = {}
    for label, mine in parts.items():
        core = set(range(before, len(mine) - after)) | forks[mine]
        found[label] = label
        if len(label) > room:
            kept = core if len(_joined(mine, core)) <= room else set(forks[mine])
            found[label] = _filled(mine, kept, room)
    return found


def _common(rows: Sequence[Sequence[str]]) -> int:
    """Count the parts that all rows begin with."""
    return sum(1 for _ in itertools.takewhile(lambda c: len(set(c)) == 1, zip(*rows, strict=False)))


def _forks(rows: Sequence[_Parts]) -> dict[_Parts, set[int]]:
    """Find, for each row, the places at which it first differs from some other row.

    The rows are walked as one tree, whose nodes are what some of them begin with.
    """
    children: dict[tuple[int, str | None], int] = {}
    branches = [0]
    for row in rows:
        node = 0
        for part in (*row, None):
            child = children.setdefault((node, part), len(branches))
            if child == len(branches):
                branches.append(0)
                branches[node] += 1
            node = child
    found: dict[_Parts, set[int]] = {}
    for row in rows:
        node, found[row] = 0, set()
        for place, part in enumerate(row):
            if branches[node] > 1:
                found[row].add(place)
            node = children[node, part]
    return found


def _joined(parts: _Parts, kept: set[int]) -> str:
    """Write the kept parts; every stretch of others is one sign, unless it is as short as that."""
    text: list[str] = []
    for is_kept, group in itertools.groupby(range(len(parts)), key=lambda place: place in kept):
        stretch = "".join(parts[place] for place in group)
        text.append(stretch if is_kept or len(stretch) <= len(ELLIPSIS) else ELLIPSIS)
    return "".join(text)


def _filled(parts: _Parts, kept: set[int], room: int) -> str:
    """Add what else there is room for: from the beginning, then from the end."""
    for order in (range(len(parts)), reversed(range(len(parts)))):
        for place in order:
            if len(_joined(parts, kept | {place})) > room:
                break
            kept = kept | {place}
    return _joined(parts, kept)


def _middle_cut(label: str, room: int) -> str:
    if len(label) <= room or room < 2:
        return label[:room]
    head = (room - 1) * 2 // 3
    return f"{label[:head]}{ELLIPSIS}{label[len(label) - (room - 1 - head) :]}"
