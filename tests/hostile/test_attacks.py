"""Issue 14, point 4: whoever may start the agent by sudo gains nothing but private loop devices.

Symptom: through its protocol the agent overwrote a file of mode 0600, removed a directory with all
that was in it, and wrote anywhere, by `op_log`, a phase named `../x`, `in_place` and `state_dir`.
Cause: it believed what its caller said, because the caller was taken for root. Fix: started by
sudo for somebody else it is a boundary: plain names below what the run owns, a policy of root's.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .arena import HOMES, MALLORY, USERS, Arena
from .attacks import (
    AFTERWARDS,
    GREETINGS,
    TESTBEDS,
    TRIALS,
    WIDE,
    WIDE_PLANT,
    WIDE_POLICY,
    Attack,
)
from .conversation import Conversation, code_of
from .guard import nothing_changes
from .requests import directory, hello, loop, trial

pytestmark = pytest.mark.needs_sudo

ATTACKS_MIN = 40
_RUN = "hostile-trials"
_OWN = (f"/var/lib/iolab/journal/{USERS[MALLORY]}.{_RUN}", "/run/iolab")
"""Paths that change in the course of a run that is granted."""


class Opened:
    """A testbed that was granted, opened again only if an attack ended it."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._conversation: Conversation | None = None

    def conversation(self) -> Conversation:
        """The conversation in which it is open."""
        if self._conversation is None or self._conversation.process.poll() is not None:
            self._conversation = Conversation(self._arena, MALLORY)
            for request in (hello(run=_RUN), loop()):
                assert code_of(self._conversation.ask(*request)) == "ok"
        return self._conversation

    def close(self) -> None:
        """End it."""
        if self._conversation is not None:
            assert self._conversation.end() == 0


@pytest.fixture(scope="module")
def opened(arena: Arena) -> Iterator[Opened]:
    made = Opened(arena)
    yield made
    made.close()


def named(attack: Attack) -> str:
    return attack.name


def test_there_are_enough_of_them():
    every = [*GREETINGS, *TESTBEDS, *TRIALS, *WIDE, *AFTERWARDS]
    assert len(every) >= ATTACKS_MIN
    assert len({attack.name for attack in every}) == len(every)


@pytest.mark.parametrize("attack", [*GREETINGS, *TESTBEDS, *AFTERWARDS], ids=named)
def test_an_attack_is_refused(attack, arena):
    arena.shell(attack.plant, user=MALLORY)
    with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
        *way, last = attack.requests
        for request in way:
            assert code_of(agent.ask(*request)) == "ok", agent.answers[-1]
        answer = agent.ask(*last)
        assert code_of(answer) in attack.codes, (attack.harm, answer)
        assert agent.end() == 0, agent.stderr


@pytest.mark.parametrize("attack", TRIALS, ids=named)
def test_an_attack_within_a_run_is_refused(attack, arena, opened):
    arena.shell(attack.plant, user=MALLORY)
    agent = opened.conversation()
    with nothing_changes(arena, leaving_out=_OWN):
        (request,) = attack.requests
        answer = agent.ask(*request)
        assert code_of(answer) in attack.codes, (attack.harm, answer)


@pytest.fixture(scope="module")
def wide_policy(arena: Arena) -> Iterator[None]:
    """Class A+ is allowed in directories of mallory's, and of others."""
    arena.shell('mkdir -p /etc/iolab && printf %s "$1" > /etc/iolab/agent.toml', WIDE_POLICY)
    arena.shell(WIDE_PLANT, user=MALLORY)
    yield
    arena.shell("rm -r /etc/iolab")


@pytest.mark.usefixtures("wide_policy")
@pytest.mark.parametrize("attack", WIDE, ids=named)
def test_an_attack_under_a_wide_policy_is_refused(attack, arena):
    """A directory testbed is touched with the rights of its user only."""
    arena.shell(attack.plant, user=MALLORY)
    with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
        for request in attack.requests:
            answer = agent.ask(*request)
            if code_of(answer) != "ok":
                break
        assert code_of(answer) in attack.codes, (attack.harm, answer)
        agent.end()


@pytest.mark.usefixtures("wide_policy")
def test_a_wide_policy_grants_what_it_says(arena):
    with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
        for request in (hello(), directory(f"{HOMES}/{MALLORY}")):
            assert code_of(agent.ask(*request)) == "ok", agent.answers[-1]
        answer = agent.ask(*trial(stack=None, is_fresh_fs=False))
        assert code_of(answer) == "ok", answer
        assert agent.end() == 0


def test_the_testbed_that_was_attacked_still_serves(opened):
    assert code_of(opened.conversation().ask(*trial())) == "ok"
