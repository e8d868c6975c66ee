"""Small grammar of English, in one place: numbers with nouns, beginnings of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.pattern import pattern

_PERCENTAGE: Final = pattern(r"(\d+(?:\.\d+)?) %")
_NAMES: Final = frozenset(
    {
        "bfq",
        "btrfs",
        "cfq",
        "ext2",
        "ext3",
        "ext4",
        "fio",
        "iolab",
        "iozone",
        "kyber",
        "mkfs",
        "sudo",
        "xfs",
    }
)
"""Names that are written small wherever they stand and look like words."""
_TAG_WORDS: Final = {
    "code": "from source code",
    "doc": "from data sheets",
    "meas": "measured and published",
    "fit": "fitted to published measurements",
    "assume": "assumed",
    "user": "given by the user",
}
"""Meanings of the provenance tags of a profile's numbers, most trustworthy first."""
_TAG_COUNT: Final = pattern(r"(\d+) (\w+)")
_NAME: Final = pattern(r"\S*[._=/`'\"]\S")
"""A first word with such a character is a name: ``bfq.slice_idle``, ``mount_options``."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: ``1 round``, ``2 rounds``, ``0 rounds``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def is_or_are(number: int) -> str:
    """Choose the verb that goes with a number."""
    return "is" if number == 1 else "are"


def provenance_text(counts: Mapping[str, int]) -> str:
    """Say where numbers of a simulation come from: ``12 from data sheets, 3 assumed``."""
    known = [f"{counts[tag]} {words}" for tag, words in _TAG_WORDS.items() if counts.get(tag)]
    return ", ".join(known) or "none"


def profile_text(fact: str) -> str:
    """Write a stored fact about a profile, ``Disk X (parameters: 3 assume)``, without its tags."""
    title, mark, tags = fact.rpartition(" (parameters: ")
    counts = {tag: int(number) for number, tag in _TAG_COUNT.findall(tags)}
    if not mark or not counts or not counts.keys() <= _TAG_WORDS.keys():
        return fact
    return f"{title} (parameters: {provenance_text(counts)})"


def sentence_case(text: str) -> str:
    """Begin a sentence with a capital, unless its first word is a name that is written small."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if first.rstrip(",:;") in _NAMES or _NAME.match(first):
        return text
    return text[:1].upper() + text[1:]


def nearest(text: str, names: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the closest of `names`, or an empty text."""
    import difflib

    word = text.lower()
    close = difflib.get_close_matches(word, list(names), cutoff=0.6)
    if not close:
        return ""
    best = min(close, key=lambda name: _changes(word, name))  # The first of equals: most alike.
    return f"; did you mean '{best}'?"


def _changes(word: str, name: str) -> int:
    """Letters to be typed, left out or replaced to get from one word to another."""
    row = list(range(len(name) + 1))
    for i, letter in enumerate(word, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(name, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1]


def percent_range(texts: Sequence[str]) -> str:
    """Return what texts say together that differ only in one percentage: ``1.2 to 8.4 %``.

    Texts that differ otherwise: the first of them.
    """
    found = [_PERCENTAGE.search(text) for text in texts]
    around = {text.replace(one[0], "", 1) for text, one in zip(texts, found, strict=True) if one}
    if len(around) != 1 or not all(found):
        return texts[0]
    values = sorted({one[1] for one in found if one}, key=float)
    said = f"{values[0]} to {values[-1]} %" if len(values) > 1 else f"{values[0]} %"
    return _PERCENTAGE.sub(said, texts[0], count=1)
