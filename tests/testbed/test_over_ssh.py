"""Findings on a host, and what is done there: `ssh` is a stand-in that runs it here.

The stand-in's search path begins with a folder in which each test puts the programs that are other
ones on its host.
"""

import os
import stat

import pytest

from iolab.errors import TestbedError
from iolab.testbed.hosts import parse_hosts
from iolab.testbed.over_ssh import connect

VERSION = "iolab-agent 9.8.7"
SSH = """#!/bin/sh
for word; do command=$word; done
export PATH={there}:/usr/bin:/bin XDG_CACHE_HOME={folder}/cache SHELL=/bin/sh
unset IOLAB_AGENT
exec sh -c "$command"
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Folder of programs of the host; the agent here has a version of its own."""
    folder = tmp_path / "there"
    folder.mkdir()
    program(tmp_path / "iolab-agent", f"echo {VERSION}")
    monkeypatch.setenv("IOLAB_AGENT", str(tmp_path / "iolab-agent"))
    program(tmp_path / "ssh", "")
    (tmp_path / "ssh").write_text(SSH.format(there=folder, folder=tmp_path))
    return folder


def program(path, line):
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def connected(there, *, needs_root=False):
    [host] = parse_hosts("db1", str(there.parent / "ssh"))
    return connect(host, needs_root=needs_root)


def refusal(there, *, needs_root=False):
    with pytest.raises(TestbedError) as caught:
        connected(there, needs_root=needs_root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_agent_is_copied_once_and_nothing_else(there):
    first = connected(there)
    [copy] = first.agent
    files = [path for path in (there.parent / "cache").rglob("*") if path.is_file()]
    assert [str(path) for path in files] == [copy]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o700
    assert files[0].read_bytes() == (there.parent / "iolab-agent").read_bytes()
    made = files[0].stat().st_ino
    assert connected(there).agent == (copy,)
    assert files[0].stat().st_ino == made
    # A copy that was spoiled is made anew.
    program(files[0], "echo iolab-agent 0.0.1")
    connected(there)
    assert files[0].read_bytes() == (there.parent / "iolab-agent").read_bytes()


def test_an_agent_on_the_search_path_there_is_taken(there):
    program(there / "iolab-agent", f"echo {VERSION}")
    assert connected(there).agent == (str(there / "iolab-agent"),)
    assert not (there.parent / "cache").exists()


def test_the_clock_is_bounded_by_the_round_trip(there):
    host = connected(there)
    assert abs(host.clock.offset_ns) <= host.clock.uncertainty_ns
    assert host.description()["clock_offset_ns"] == host.clock.offset_ns
    program(there / "date", "echo 1699999999N")
    host = connected(there)
    assert host.clock is None
    assert host.description() == {
        "name": "db1",
        "clock_offset_ns": None,
        "clock_uncertainty_ns": None,
    }


def test_the_clock_of_a_host_that_is_an_hour_behind(there):
    program(there / "date", "n=$(/bin/date +%s%N); echo $((n - 3600000000000))")
    clock = connected(there).clock
    assert abs(clock.offset_ns + 3600 * 10**9) <= clock.uncertainty_ns


def test_an_agent_of_another_version(there):
    program(there / "iolab-agent", "echo iolab-agent 0.0.9")
    assert refusal(there) == (
        f"db1: {there}/iolab-agent is iolab-agent 0.0.9, and this iolab goes with {VERSION}: "
        "install the same version there, or take it away: then ours is copied"
    )
    program(there / "iolab-agent", "exit 1")
    assert "iolab-agent is no agent, and this iolab" in refusal(there)


def test_another_architecture(there):
    program(there / "uname", "echo pdp11")
    message = refusal(there)
    assert message.startswith(f"db1 is pdp11, and this iolab-agent is for {os.uname().machine}: ")
    # Its own agent is as good as any.
    program(there / "iolab-agent", f"echo {VERSION}")
    assert connected(there).agent == (str(there / "iolab-agent"),)


def test_a_copy_that_does_not_start(there):
    program(there.parent / "iolab-agent", f"[ ${{0%/*}} = {there.parent} ] && echo {VERSION}")
    assert "db1: the copy of iolab-agent does not start there: exit code 1" in refusal(there)


def test_no_room_for_a_copy(there):
    (there.parent / "cache").write_text("a file")
    message = refusal(there)
    assert message.startswith(f"db1: iolab-agent cannot be copied to {there.parent}/cache/iolab/")
    assert "XDG_CACHE_HOME" in message


def test_who_is_not_root_there_needs_the_copy_of_root(there):
    program(there / "id", "echo 1000")
    message = refusal(there, needs_root=True)
    assert message.startswith("db1: this needs root, and you are not root there: connect as root")
    assert "--hosts root@db1" in message
    assert len(connected(there).agent) == 1, "where root is not needed, it is not asked for"


def test_no_shell(there):
    (there.parent / "ssh").write_text("#!/bin/sh\necho This account is not available.\n")
    message = refusal(there)
    assert message.startswith("db1 does not run a shell for us: no answer: ")
    assert message.endswith(f"`{there.parent}/ssh db1 'sh -c true'` must work")


def test_a_shell_that_talks(there):
    ssh = there.parent / "ssh"
    ssh.write_text(ssh.read_text().replace("exec sh", "echo Welcome, friend\nexec sh"))
    assert refusal(there).startswith("db1 prints 'Welcome, friend' before a command begins")


def test_a_host_that_is_not_reached(there):
    program(there.parent / "ssh", "echo Permission denied '(publickey).' >&2; exit 255")
    assert refusal(there) == (
        "db1 cannot be reached: Permission denied (publickey). "
        f"`{there.parent}/ssh db1 true` must work without a question"
    )
