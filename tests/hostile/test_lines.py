"""Issue 14, point 4: no line that mallory writes takes the machine's memory, or the agent's sense.

Symptom: a line had no end, and the agent kept all of it. Fix: a limit.
"""

from __future__ import annotations

import json

import pytest

from .arena import MALLORY
from .conversation import Conversation, code_of
from .guard import nothing_changes
from .processes import agents, peak_bytes
from .requests import hello, loop

pytestmark = pytest.mark.needs_sudo

GIB = 1 << 30
CHUNK = b"a" * (1 << 20)
PEAK_BYTES_MAX = 256 << 20

LINES = {
    "no JSON": b"hello",
    "half of it": b'{"id":1,"method":"hello"',
    "deep lists": b'{"id":1,"method":"hello","params":' + b"[" * 100_000 + b"}",
    "deep objects": b'{"a":' * 100_000,
    "a list": b"[1,2,3]",
    "a number": b"1e999",
    "an id that is negative": b'{"id":-1,"method":"hello","params":{}}',
    "an id beyond": b'{"id":18446744073709551616,"method":"hello","params":{}}',
    "a number without end": b'{"id":1,"method":"restore","params":{"run":' + b"9" * 100_000 + b"}}",
    "not UTF-8": b'{"id":1,"method":"hello","params":{"run":"\xff\xfe"}}',
    "NULs": b"\0" * 1000,
    "a key twice": b'{"id":1,"id":2,"method":"shutdown","params":{}}',
    "a field more": b'{"id":1,"method":"shutdown","params":{},"uid":0}',
    "no params": b'{"id":1,"method":"shutdown"}',
    "state_dir twice": json.dumps({"id": 1, "method": "hello", "params": hello()[1]})
    .replace('"state_dir": null', '"state_dir": null, "state_dir": "/etc"')
    .encode(),
    "a return": b'{"id":1,"method":"exec","params":{}}\r',
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_no_request_is_refused(name, arena):
    with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
        agent.write(LINES[name] + b"\n")
        assert code_of(agent.answer()) in ("usage", "refused")
        assert code_of(agent.ask(*hello())) == "ok"
        assert agent.end() == 0


def test_a_gibibyte_on_one_line_is_not_kept(arena):
    with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
        assert code_of(agent.ask(*hello())) == "ok"
        (process,) = agents(agent.process.pid)
        is_taken = True
        for _ in range(GIB // len(CHUNK)):
            is_taken = is_taken and agent.write(CHUNK)
            if not is_taken:
                break
            assert peak_bytes(process) < PEAK_BYTES_MAX
        if is_taken:
            agent.write(b"\n")
            assert code_of(agent.answer()) in ("usage", "refused")


def test_a_million_lines_while_it_is_busy_are_not_kept(arena):
    """Reading ahead for `interrupt`; what waits there has a limit, too."""
    with Conversation(arena, MALLORY) as agent:
        assert code_of(agent.ask(*hello())) == "ok"
        agent.write(json.dumps({"id": 2, "method": "open_testbed", "params": loop()[1]}).encode())
        (process,) = agents(agent.process.pid)
        agent.write(b"\n" + b"x" * 200 + b"\n")
        assert peak_bytes(process) < PEAK_BYTES_MAX
