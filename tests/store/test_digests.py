"""Digests say the same of rows whichever way their text is made."""

import pytest

from iolab.store import digests


@pytest.mark.parametrize(
    "facts",
    ["", "0", "0123456789abcdef", ",".join(["00ff"] * 111), 'a"b', "a\\b", "ä", "\n", "x", "A,0"],
)
def test_the_text_of_facts_is_that_of_the_encoder(facts):
    assert digests._text_of_facts(17, facts) == digests._ENCODE([(17, facts)])
