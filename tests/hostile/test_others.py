"""Issue 14, point 4: one user can neither see, stop nor restore another's run.

Symptom: all runs through sudo were root's, so that `restore` of one user undid what another's run
was measuring with, and `hello` listed everybody's. Fix: a run belongs to who asked for it.
"""

from __future__ import annotations

import json

import pytest

from .arena import ALICE, GUARD, HOMES, MALLORY, USERS, Arena
from .conversation import Conversation, code_of
from .guard import guarded, nothing_changes
from .listing import changes
from .processes import agents, kill_all
from .requests import directory, hello, loop, trial

pytestmark = pytest.mark.needs_sudo

ALICES_RUN = "alices-run"


def opened(arena: Arena, user: str, run: str) -> Conversation:
    """A run of a user's with an open testbed."""
    agent = Conversation(arena, user)
    for request in (hello(run=run), loop()):
        assert code_of(agent.ask(*request)) == "ok", agent.answers[-1]
    return agent


def test_a_live_run_of_anothers_is_not_touched(arena):
    with nothing_changes(arena), opened(arena, ALICE, ALICES_RUN) as alice:
        during = guarded(arena)
        with Conversation(arena, MALLORY) as mallory:
            assert mallory.ask(*hello(run="hostile-2"))["result"]["open_journals"] == []
            restored = mallory.ask("restore", {"run": None})["result"]
            assert restored == {"restored": [], "obsolete": [], "alive": [], "problems": []}
            mallory.ask("restore", {"run": ALICES_RUN})
            assert ALICES_RUN not in json.dumps(mallory.answers[:2])
        # A name that alice has taken is free: else mallory could find out which she has.
        with Conversation(arena, MALLORY) as mallory:
            for request in (hello(run=ALICES_RUN), loop(), trial()):
                assert code_of(mallory.ask(*request)) == "ok", mallory.answers[-1]
        assert changes(during, guarded(arena)) == []
        assert code_of(alice.ask(*trial())) == "ok"
        assert alice.ask("close_testbed", {})["result"]["is_restored"]


def test_a_dead_run_of_anothers_is_not_touched_and_does_not_stop_mallory(arena):
    before = guarded(arena)
    alice = opened(arena, ALICE, ALICES_RUN)
    kill_all(alice)
    alice.end()
    left = guarded(arena)
    assert any("alices" in line for line in changes(before, left)), "nothing was left to attack"
    with Conversation(arena, MALLORY) as mallory:
        assert mallory.ask(*hello(run="hostile-2"))["result"]["open_journals"] == []
        assert mallory.ask("restore", {"run": None})["result"]["restored"] == []
        mallory.ask("restore", {"run": ALICES_RUN})
        assert changes(left, guarded(arena)) == []
        assert code_of(mallory.ask(*loop())) == "ok"
        assert code_of(mallory.ask(*trial())) == "ok"
    assert changes(left, guarded(arena)) == []
    with Conversation(arena, ALICE) as again:
        (journal,) = again.ask(*hello(run="alices-restore"))["result"]["open_journals"]
        assert journal["run"] == ALICES_RUN
        answer = again.ask("restore", {"run": None})["result"]
        assert (answer["problems"], bool(answer["restored"])) == ([], True)
    assert changes(before, guarded(arena)) == []


def test_roots_dead_run_is_not_touched(arena):
    before = guarded(arena)
    agent = ["/usr/local/libexec/iolab/iolab-agent"]
    root = Conversation(arena, None, agent)
    for request in (hello(run="roots-run"), loop()):
        assert code_of(root.ask(*request)) == "ok", root.answers[-1]
    kill_all(root)
    root.end()
    left = guarded(arena)
    with Conversation(arena, MALLORY) as mallory:
        assert mallory.ask(*hello(run="hostile-2"))["result"]["open_journals"] == []
        mallory.ask("restore", {"run": "roots-run"})
        mallory.ask("restore", {"run": None})
        assert changes(left, guarded(arena)) == []
    with Conversation(arena, None, agent) as again:
        again.ask(*hello(run="roots-restore"))
        assert again.ask("restore", {"run": None})["result"]["problems"] == []
    assert changes(before, guarded(arena)) == []


def test_journals_that_mallory_plants_are_nobodys(arena):
    """A planted journal once said what a restore wrote, and where."""
    change = {"kind": "directory_created", "path": f"{GUARD}/alices", "token": "x"}
    lines = [
        {"line": "open", "version": 1, "run": "planted-1", "boot_id": "x", "uid": 0},
        {"line": "intent", "id": 1, "change": change},
        {"line": "state", "id": 1, "state": "applied"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    home = f"{HOMES}/{MALLORY}"
    script = 'mkdir -p "$1" && printf %s "$2" > "$1/planted-1.jsonl"'
    for place in (f"{home}/.local/state/iolab/journal", "/tmp/iolab/journal", "/var/tmp/journal"):
        arena.shell(script, place, text, user=MALLORY)
    try:
        with nothing_changes(arena), Conversation(arena, MALLORY) as mallory:
            assert mallory.ask(*hello())["result"]["open_journals"] == []
            assert mallory.ask("restore", {"run": None})["result"]["restored"] == []
            mallory.ask("restore", {"run": "planted-1"})
    finally:
        arena.shell(f"rm -rf {home}/.local /tmp/iolab /var/tmp/journal")
    for place in ("/var/lib/iolab", "/run/iolab"):
        script = f"mkdir -p {place}/journal/61001 && touch {place}/x"
        done = arena.run(["sh", "-c", script], user=MALLORY)
        assert done.returncode != 0


SECRETS = {
    "doctor": lambda path: ("doctor", {"paths": [path]}),
    "directory": directory,
    "image_dir": lambda path: loop(image_dir=path),
}


@pytest.mark.parametrize("request_of", SECRETS.values(), ids=list(SECRETS))
def test_what_lies_in_a_closed_directory_is_not_told(request_of, arena):
    with Conversation(arena, MALLORY) as agent:
        agent.ask(*hello())
        there, nowhere = f"{GUARD}/roots/empty", f"{GUARD}/roots/xmpty"
        said = [told_of(path, agent.ask(*request_of(path))) for path in (there, nowhere)]
    assert said[0] == said[1]


def told_of(path, answer):
    """Content of an answer about a path, without its name and without noise."""
    checks = answer.get("result", {}).get("checks", [])
    told = [check for check in checks if check["name"] == path] or [answer.get("error")]
    return json.dumps(told).replace(path, "PATH")


def test_the_image_is_nobodys_to_exchange(arena):
    """Between being made and being attached an image has a name, in a directory for all."""
    with opened(arena, MALLORY, "hostile-1") as agent:
        (devices,) = [
            answer["result"]["devices"]
            for answer in agent.answers
            if "devices" in answer.get("result", {})
        ]
        for device in devices:
            for word in ("<", ">", ">>"):
                done = arena.run(["sh", "-c", f": {word} /dev/{device}"], user=MALLORY)
                assert done.returncode != 0
        folder = arena.inside("/run/iolab")
        point = f"/run/iolab/{USERS[MALLORY]}.hostile-1"
        assert arena.inside(point).is_dir()
        listed = arena.run(["ls", point], user=MALLORY)
        assert listed.returncode != 0
        assert folder.stat().st_mode & 0o022 == 0
        assert list(arena.inside("/var/tmp").glob(".iolab*")) == []
        assert agents(agent.process.pid)
