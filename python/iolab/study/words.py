"""Words of a command line, as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def without_options(
    words: Sequence[str], with_value: Collection[str], flags: Collection[str] = ()
) -> list[str]:
    """Words without some options.

    Parameters
    ----------
    with_value : options that go with the word behind them, or with what stands behind their ``=``.
    flags : options that have no value.
    """
    found = list[str]()
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in with_value:
            is_value = True
        elif word.partition("=")[0] not in with_value and word not in flags:
            found.append(word)
    return found
