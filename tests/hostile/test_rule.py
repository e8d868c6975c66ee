"""Issue 14, point 4: what the rule for sudo lets start, and what the agent makes of its start.

Symptom: the rule that one had to write named the agent of a virtual environment, which its user may
replace; programs were looked for in the caller's PATH; sub-commands ran as root. Fix: the rule
names a copy of root's that takes no words, checks who could change it, and has an environment of
its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from iolab.testbed.installed import INSTALLED_AGENT

from .arena import ALICE, BOB, CAROL, GUARD, HOMES, MALLORY, SEARCH_PATH, iolab_script
from .conversation import Conversation, code_of
from .guard import nothing_changes
from .processes import agents
from .requests import directory, hello, loop, trial

pytestmark = pytest.mark.needs_sudo

AGENT = str(INSTALLED_AGENT)
SCRATCH = f"{HOMES}/{BOB}/scratch"


@dataclass(frozen=True, slots=True)
class Start:
    """A start that must fail, and do nothing."""

    name: str
    script: str
    user: str = MALLORY


STARTS = (
    Start("another program", "sudo -n -- id"),
    Start("words, which the rule forbids", f"sudo -n -- {AGENT} measure"),
    Start("the rehearsal of words", f"sudo -n -- {AGENT} names"),
    Start("own agent", "cp /run/iolab-agent /tmp/mine; sudo -n -- /tmp/mine"),
    Start("a link to it", f"ln -sf {AGENT} /tmp/link; sudo -n -- /tmp/link"),
    Start("a name that climbs", f"sudo -n -- {AGENT}/../iolab-agent"),
    Start("the library of mallory's", f"sudo -n LD_PRELOAD=/tmp/x.so {AGENT}"),
    Start("who asks", f"sudo -n SUDO_UID=0 {AGENT}"),
    Start("the environment kept", f"sudo -n --preserve-env -- {AGENT}"),
    Start("as alice", f"sudo -n -u alice -- {AGENT}"),
    Start("measure", f"sudo -n -- {AGENT} measure", CAROL),
    Start("watchdog", f"sudo -n -- {AGENT} watchdog /var/tmp/state hostile-1", CAROL),
    Start("semaphores", f"sudo -n -- {AGENT} semaphores make 2", CAROL),
    Start("semaphores removed", f"sudo -n -- {AGENT} semaphores remove", CAROL),
    Start("words unknown", f"sudo -n -- {AGENT} serve --state-dir /etc", CAROL),
    Start("a policy of carol's", f"sudo -n -- {AGENT} --policy /tmp/agent.toml", CAROL),
)


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_it_does_not_start(start, arena):
    with nothing_changes(arena, leaving_out=("/tmp/mine", "/tmp/link")):
        done = arena.run(["sh", "-c", start.script], user=start.user)
        assert done.returncode != 0, done.stdout
        assert done.stdout == b""


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (f"chmod 0777 {AGENT}", f"chmod 0755 {AGENT}"),
        (f"chmod 0775 {AGENT}", f"chmod 0755 {AGENT}"),
        (f"chown alice {AGENT}", f"chown root {AGENT}"),
        (f"chmod 0777 {INSTALLED_AGENT.parent}", f"chmod 0755 {INSTALLED_AGENT.parent}"),
        (f"chown alice {INSTALLED_AGENT.parent}", f"chown root {INSTALLED_AGENT.parent}"),
        ("chmod 1777 /usr/local/libexec", "chmod 0755 /usr/local/libexec"),
        ("chmod g+w /usr/local", "chmod 0755 /usr/local"),
    ],
)
def test_an_agent_that_others_can_change_does_nothing_for_a_user(change, back, arena):
    arena.shell(change)
    try:
        with Conversation(arena, MALLORY) as agent:
            assert code_of(agent.ask(*hello())) != "ok"
            assert agent.end() != 0
            assert "iolab-agent" in agent.stderr
        root = Conversation(arena, None, [AGENT])
        assert code_of(root.ask(*hello())) == "ok"
        assert root.end() == 0
    finally:
        arena.shell(back)


@pytest.mark.parametrize(
    ("policy", "mode", "owner"),
    [
        ('classes = ["A", "B", "C"]\n', "0666", "root"),
        ('classes = ["A", "B", "C"]\n', "0644", "mallory"),
        ("classes = \n", "0644", "root"),
        ('clases = ["B"]\n', "0644", "root"),
    ],
    ids=["all may write it", "it is mallory's", "it cannot be read", "a key is unknown"],
)
def test_a_policy_that_cannot_be_believed_allows_nothing(policy, mode, owner, arena):
    script = 'mkdir -p /etc/iolab && printf %s "$1" > /etc/iolab/agent.toml'
    arena.shell(f"{script} && chmod {mode} /etc/iolab/agent.toml", policy)
    arena.shell(f"chown {owner} /etc/iolab/agent.toml")
    try:
        with nothing_changes(arena), Conversation(arena, MALLORY) as agent:
            agent.ask(*hello())
            assert code_of(agent.ask(*loop())) != "ok"
    finally:
        arena.shell("rm -r /etc/iolab")


def test_a_policy_of_roots_is_what_counts(arena):
    policy = 'classes = ["B"]\nimage_dirs = ["/var/tmp"]\nmax_bytes = 67108864\n'
    arena.shell('mkdir -p /etc/iolab && printf %s "$1" > /etc/iolab/agent.toml', policy)
    try:
        with Conversation(arena, MALLORY) as agent:
            assert agent.ask(*hello())["result"]["boundary"]["classes"] == ["B"]
            assert code_of(agent.ask(*loop(size_bytes=128 << 20))) == "refused"
            assert code_of(agent.ask(*loop())) == "ok"
    finally:
        arena.shell("rm -r /etc/iolab")


EVIL = r"""
mkdir -p /tmp/evil && cd /tmp/evil
for name in mkfs mkfs.ext4 mke2fs mount umount unshare modprobe udevadm sh losetup iolab-agent; do
    printf '#!/bin/sh\nid > /tmp/evil/ran-%s\n' $name > $name
    chmod 755 $name
done
echo '[defaults] blocksize = 1024' > /tmp/evil/mke2fs.conf
"""

ENVIRONMENT = {
    "PATH": f"/tmp/evil:{SEARCH_PATH}",
    "HOME": "/tmp/evil",
    "XDG_STATE_HOME": "/tmp/evil/state",
    "TMPDIR": "/tmp/evil",
    "MKE2FS_CONFIG": "/tmp/evil/mke2fs.conf",
    "BLKID_FILE": "/tmp/evil/blkid",
    "BLKID_CONF": "/tmp/evil/blkid.conf",
    "LIBMOUNT_FSTAB": "/tmp/evil/fstab",
    "LIBMOUNT_MTAB": "/tmp/evil/mtab",
    "IOLAB_AGENT": "/tmp/evil/iolab-agent",
    "IOLAB_STATE": "/tmp/evil/state",
    "SUDO_UID": "0",
    "SUDO_USER": "root",
    "SUDO_COMMAND": "/bin/sh",
    "BASH_ENV": "/tmp/evil/sh",
    "ENV": "/tmp/evil/sh",
}


@pytest.mark.parametrize("user", [MALLORY, CAROL])
def test_the_environment_decides_nothing(user, arena):
    arena.shell(EVIL, user=user)
    try:
        with Conversation(arena, user, environment=ENVIRONMENT) as agent:
            answer = agent.ask(*hello())
            assert answer["result"]["boundary"]["uid"] == {MALLORY: 61001, CAROL: 61003}[user]
            assert code_of(agent.ask(*loop())) == "ok"
            assert code_of(agent.ask(*trial())) == "ok"
            assert code_of(agent.ask(*directory(f"{GUARD}/open"))) == "usage"
            agent.ask("close_testbed", {})
            assert agent.end() == 0
        made = [path.name for path in arena.inside("/tmp/evil").iterdir()]
        assert [name for name in made if name.startswith("ran-") or name == "state"] == []
    finally:
        arena.shell("rm -rf /tmp/evil")


LIMITS = ("ulimit -f 0", "ulimit -f 20000", "ulimit -n 8", "ulimit -s 64", "ulimit -t 1", "umask 0")


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_set_before_leave_nothing_behind(limit, arena):
    """A limit on files kills the agent in the middle of an image, or of its journal."""
    script = ["sh", "-c", f"{limit}; exec sudo -n -- {AGENT}"]
    with nothing_changes(arena):
        with Conversation(arena, MALLORY, script) as agent:
            for request in (hello(), loop(), trial()):
                agent.ask(*request)
            folders = ("/var/lib/iolab", "/run/iolab", "/var/tmp")
            below = [path for name in folders for path in arena.inside(name).rglob("*")]
            plain = [path for path in below if not path.is_symlink()]  # Links have no modes.
            open_to_all = [str(path) for path in plain if path.lstat().st_mode & 0o022]
            assert open_to_all == []
        with Conversation(arena, MALLORY) as agent:
            agent.ask(*hello(run="hostile-restore"))
            assert agent.ask("restore", {"run": None})["result"]["problems"] == []


def test_no_signal_of_the_users_reaches_it(arena):
    with Conversation(arena, MALLORY) as agent:
        for request in (hello(), loop()):
            assert code_of(agent.ask(*request)) == "ok"
        victims = agents(agent.process.pid)
        assert victims
        for victim in victims:
            for name in ("TERM", "INT", "STOP", "KILL", "HUP"):
                done = arena.run(["/bin/kill", f"-{name}", str(victim)], user=MALLORY)
                assert done.returncode != 0
        assert code_of(agent.ask(*trial())) == "ok"
        assert agent.end() == 0


def test_a_user_who_may_do_anything_is_not_held_by_the_policy(arena):
    """Root itself, as `sudo iolab ...` is, needs no policy: class A+ in a directory of its own."""
    arena.shell(f"mkdir -p {SCRATCH}", user=BOB)
    words = ["compare", "--on", f"dir:{SCRATCH}", "--record-size", "4k,64k"]
    words += ["--file-size", "1m", "--test", "write", "--rounds", "2", "--out", "out"]
    script = iolab_script(*words, before="sudo -n")
    done = arena.run(["sh", "-c", script], user=BOB, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    by_agent = Conversation(arena, BOB)
    assert code_of(by_agent.ask(*hello())) == "ok"
    assert code_of(by_agent.ask(*directory(SCRATCH))) == "refused"
    by_agent.end()
    arena.shell(f"rm -rf {SCRATCH}", user=BOB)


WRAPPER = "/usr/local/libexec/measure"
WRAP = f"""
printf '#!/bin/sh\\nexec {AGENT}\\n' > {WRAPPER} && chmod 0755 {WRAPPER}
echo 'mallory ALL=(root) NOPASSWD: {WRAPPER}' > /etc/sudoers.d/wrapper
chmod 0440 /etc/sudoers.d/wrapper
"""


def test_a_wrapper_of_the_agents_makes_nobody_root(arena):
    """Symptom: whatever sudo started but the agent itself counted as somebody's who may do
    anything, so that a rule for a wrapper made its user root. Fix: sudo is asked whether he may.
    """
    arena.shell(WRAP)
    try:
        with Conversation(arena, MALLORY, ("sudo", "-n", "--", WRAPPER)) as agent:
            answer = agent.ask(*hello())["result"]
            assert answer["boundary"] == {"uid": 61001, "policy": "default", "classes": ["B"]}
            assert code_of(agent.ask(*directory(f"{GUARD}/open"))) == "refused"
    finally:
        arena.shell(f"rm {WRAPPER} /etc/sudoers.d/wrapper")


BURDENS = (
    ("prlimit", "--as=2000000000:", "--data=1000000000:", "--stack=1048576:", "--rttime=1:"),
    ("prlimit", "--nproc=64:", "--sigpending=1:", "--fsize=4096:", "--nofile=64:"),
    ("env", "--ignore-signal=CHLD,XFSZ,TERM", "--block-signal=TERM,CHLD,USR1"),
    ("choom", "-n", "900", "--"),
    ("nice", "-n", "19", "chrt", "--idle", "0"),
)
"""Limits that outlive sudo, if they are not taken away: each before the command that it burdens."""


@pytest.mark.parametrize("burden", BURDENS, ids=lambda burden: " ".join(burden[:2]))
def test_what_a_caller_hands_over_does_not_keep_it_from_working(burden, arena):
    command = (*burden, "sudo", "-n", "--", AGENT)
    with nothing_changes(arena), Conversation(arena, MALLORY, command) as agent:
        for request in (hello(), loop(), trial()):
            assert code_of(agent.ask(*request)) == "ok", agent.answers[-1]
        told = Path(f"/proc/{agents(agent.process.pid)[0]}")
        assert (told / "oom_score_adj").read_text() == "0\n"
        blocked = re.search(r"SigBlk:\s*(\w+)", (told / "status").read_text())
        assert blocked is not None
        assert int(blocked[1], 16) == 0
        assert os.getpriority(os.PRIO_PROCESS, int(told.name)) == 0
        assert agent.end() == 0


def test_without_a_rule_nothing_is_granted(arena):
    arena.shell("mv /etc/sudoers.d/alice /etc/alices-rule")
    try:
        done = arena.iolab("aa", "--on", "loop:256m", "--rounds", "4", user=ALICE)
        assert done.returncode == 1
        assert b"install-agent" in done.stderr
    finally:
        arena.shell("mv /etc/alices-rule /etc/sudoers.d/alice")
