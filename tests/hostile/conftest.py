"""One arena for all attacks; the real machine is looked at when it has gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .arena import MALLORY, Arena
from .conversation import Conversation, code_of
from .guard import real_machine
from .listing import changes
from .requests import hello, loop, trial


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """The namespace, in which the agent has served mallory once, as it should."""
    before = real_machine()
    made = Arena(tmp_path_factory.mktemp("arena"))
    try:
        with Conversation(made, MALLORY) as first:
            for request in (hello(run="hostile-0"), loop(), trial()):
                assert code_of(first.ask(*request)) == "ok", first.answers[-1]
        yield made
    finally:
        made.close()
    changed = changes(before, real_machine())
    assert not changed, "the real machine was changed: " + "; ".join(changed)
