"""Issue 14, point 4: what is allowed works, and writes only where it should.

A study of private loop devices, typed by a user without any root of his own, through the front end
and a real sudo; strace tells every file that the agent and its children opened to write.
"""

from __future__ import annotations

import json
import re

import pytest

from iolab.testbed.installed import DEFAULT_POLICY, INSTALLED_AGENT

from .arena import ALICE, HOMES, MALLORY, iolab_script
from .conversation import Conversation, code_of
from .guard import nothing_changes
from .requests import hello, loop
from .trace import TRACED, traced

pytestmark = pytest.mark.needs_sudo

STUDY = (
    *("compare", "--on", "loop:256m", "--scheduler", "none,mq-deadline", "--rounds", "2"),
    *("--record-size", "64k", "--file-size", "8m", "--test", "write,read", "--cache", "cold"),
    *("--mount-options", "noatime", "--mkfs-options", "-m 0", "--memory-limit", "128m"),
)

ALLOWED = (
    r"/var/lib/iolab(/.*)?",
    r"/run/iolab(/.*)?",
    r"/run/iolab-program-[0-9a-f-]+(/.*)?",
    r"/var/tmp(/\.iolab-[^/]*)?",
    r"/dev/(loop-control|loop\d+|null|tty)",
    r"/sys/(block|devices/virtual/block)/loop\d+/.*",
    r"/sys/fs/cgroup/(memory/)?iolab[^/]*(/.*)?",
    r"/sys/fs/cgroup/cgroup\.subtree_control",
    r"/sys/kernel/debug",
    r"/proc/sys/vm/drop_caches",
    r"/proc/(self|\d+)/oom_score_adj",
)
"""Paths where the agent, root for alice, and its programs may write, make, remove or mount."""


def test_a_study_of_loop_devices_works_for_an_ordinary_user(arena):
    with nothing_changes(arena):
        done = arena.iolab(*STUDY, "--out", "study", user=MALLORY)
        assert done.returncode == 0, done.stderr.decode()
    verdict = arena.inside(f"{HOMES}/{MALLORY}/study/verdict.json")
    assert json.loads(verdict.read_text())["trials"]["ok"] == 4
    assert verdict.stat().st_uid == 61001
    arena.shell(f"rm -r {HOMES}/{MALLORY}/study")


def test_doctor_says_what_sudo_allows(arena):
    done = arena.iolab("doctor", user=MALLORY)
    assert done.returncode == 0
    assert b"agent by sudo      /usr/local/libexec" in done.stdout
    assert b"classes B are allowed by default" in done.stdout


def test_the_agents_own_doctor_speaks_of_the_user_and_the_policy(arena):
    """Symptom: it said "this user is root: loop testbeds and knobs are possible"."""
    with Conversation(arena, MALLORY) as agent:
        checks = agent.ask("doctor", {"paths": []})["result"]["checks"]
    told = {check["name"]: check for check in checks}
    assert "this user is root" not in told["root"]["message"]
    assert told["root"]["message"] == (
        "root works for user 61001 by the policy default; possible: private loop devices and "
        "their knobs (B); not: knobs under directories (A+), whole devices (C)"
    )
    assert told["root"]["status"] == "warn"
    assert told["loop"]["status"] == "ok"


def test_the_policy_that_is_printed_is_the_one_that_holds(arena):
    arena.shell('mkdir -p /etc/iolab && printf %s "$1" > /etc/iolab/agent.toml', DEFAULT_POLICY)
    try:
        with Conversation(arena, MALLORY) as agent:
            boundary = agent.ask(*hello())["result"]["boundary"]
            assert boundary == {"uid": 61001, "policy": "/etc/iolab/agent.toml", "classes": ["B"]}
            assert code_of(agent.ask(*loop(size_bytes=(64 << 30) + 4096))) == "refused"
            assert code_of(agent.ask(*loop())) == "ok"
    finally:
        arena.shell("rm -r /etc/iolab")


def test_it_opens_for_writing_only_what_it_should(arena):
    log = arena.inside("/run/strace.log")
    script = ["sh", "-c", iolab_script(*STUDY, "--out", "traced")]
    trace = ["strace", "-f", "-y", "-s", "4096", "-e", f"trace={TRACED}", "-o", "/run/strace.log"]
    home = f"{HOMES}/{ALICE}"
    done = arena.run([*trace, "-u", ALICE, *script], environment={"HOME": home}, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    calls = traced(log.read_text(errors="replace"), str(INSTALLED_AGENT))
    arena.shell(f"rm -rf /run/strace.log {home}/traced")
    assert len(calls) > 50, "the agent was not traced"
    allowed = re.compile("|".join(f"(?:{pattern})" for pattern in ALLOWED))
    wrong = [call.line for call in calls if not allowed.fullmatch(call.path)]
    assert wrong == [], "\n".join(wrong)
