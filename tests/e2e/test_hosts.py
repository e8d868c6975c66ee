"""Hosts over ssh: three servers of OpenSSH on this machine, each reached by a name of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import Run

pytestmark = [pytest.mark.needs_sshd, pytest.mark.usefixtures("untouched_machine")]

NAMES = ("a", "b", "c")
STUDY = """
name = "fleet"
testbed = "loop:64m"
design = "trials"
rounds = 3
[factors]
scheduler = ["none", "mq-deadline"]
[settings]
direct = true
record_size = "4k"
[[workloads]]
kind = "iozone"
tests = ["random-read"]
file_size = "4m"
"""
SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
SetEnv XDG_CACHE_HOME={folder}/cache-{name} {environment}
"""
CLIENT = """
Host {name}
    HostName 127.0.0.1
    Port {port}
    User root
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking accept-new
"""


@dataclass
class Hosts:
    """Three names that lead to servers of this machine."""

    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def ssh(self) -> str:
        return f"ssh -F {self.folder}/config"

    def flags(self, *names: str) -> list[str]:
        return ["--hosts", ",".join(names or NAMES), "--ssh", self.ssh]

    def start(self, name: str, environment: str = "") -> None:
        """Start a host's server, on its own port; whoever connects gets these variables."""
        if name not in self.ports:
            self.ports[name] = free_port()
        config = self.folder / f"sshd_{name}"
        config.write_text(
            SERVER.format(
                port=self.ports[name], folder=self.folder, name=name, environment=environment
            )
        )
        # Its own /run has the empty directory that the server wants.
        script = (
            "[ -d /run/sshd ] || { mount -t tmpfs none /run && mkdir -m 755 /run/sshd; }; "
            f'exec {shutil.which("sshd")} -D -e -f "$0"'
        )
        with (self.folder / f"log_{name}").open("ab") as log:
            self.servers[name] = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", script, str(config)], stderr=log
            )
        deadline = time.monotonic() + 20
        while not answers(self.ports[name]):
            assert time.monotonic() < deadline, (self.folder / f"log_{name}").read_text()
            time.sleep(0.05)

    def write_names(self) -> None:
        text = "".join(
            CLIENT.format(name=name, port=port, folder=self.folder)
            for name, port in self.ports.items()
        )
        (self.folder / "config").write_text(text)

    def stop(self, name: str) -> None:
        """End a host's server and all its connections, as a host does that loses its power."""
        server = self.servers.pop(name)
        sessions = descendants(server.pid)
        server.kill()
        server.wait()
        for session in sessions:
            if "sshd" in name_of(session):
                os.kill(session, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def descendants(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # It has just ended.
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def words_of(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    folder = tmp_path / "ssh"
    folder.mkdir()
    for key in ("key", "host_key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    made = Hosts(folder)
    try:
        for name in NAMES:
            made.start(name)
        made.write_names()
        (tmp_path / "study.toml").write_text(STUDY)
        yield made
    finally:
        for name in list(made.servers):
            made.stop(name)


def records(directory: Path) -> int:
    """Trials that are done."""
    with sqlite3.connect(f"file:{directory / 'study.db'}?mode=ro", uri=True) as store:
        return int(store.execute("SELECT COUNT(*) FROM record WHERE status = 'ok'").fetchone()[0])


def test_three_hosts_run_one_study(iolab: Run, hosts: Hosts, tmp_path: Path) -> None:
    fleet = ("run", "study.toml", *hosts.flags(), "--out", "fleet", "--seed", "5")
    done = iolab(*fleet)
    assert done.returncode == 0, done.stderr
    assert "3 hosts" in " ".join(done.stdout.split())
    assert "to be expected" in done.stdout
    whole = iolab("fleet", *(f"fleet/{name}" for name in NAMES))
    assert whole.stdout in done.stdout, "the verdict is that of `iolab fleet`"
    for name in NAMES:
        assert records(tmp_path / "fleet" / name) == 6
        cache = hosts.folder / f"cache-{name}"
        files = [path.name for path in cache.rglob("*") if path.is_file()]
        assert files == ["iolab-agent"], "nothing else of iolab is there"
    report = iolab("report", "fleet/a")
    assert report.returncode == 0, report.stderr
    assert_rounds_begin_together(tmp_path / "fleet")
    alone = iolab("run", "fleet/a", "--resume")
    assert alone.returncode == 1
    assert "holds a study of the host a: continue it with --hosts a" in alone.stderr
    again = iolab(*fleet)
    assert again.returncode == 1
    assert "already holds studies (a, b, c): the same command with --resume" in again.stderr


def assert_rounds_begin_together(fleet: Path) -> None:
    """No host begins a round before all have ended the one before."""
    from iolab.store.db import Store

    begun: dict[int, list[int]] = {}
    ended: dict[int, list[int]] = {}
    for name in NAMES:
        with Store.open_reader(fleet / name / "study.db") as store:
            assert store.host_names() == [name]
            for trial in store.load_data().trials:
                record = store.record(trial.trial_id)
                at_ns = record["started_at_unix_ns"]
                begun.setdefault(trial.round, []).append(at_ns)
                ended.setdefault(trial.round, []).append(at_ns + record["elapsed_ns"])
    assert sorted(begun) == [1, 2, 3]
    for number in (2, 3):
        assert min(begun[number]) > max(ended[number - 1]), number


@contextmanager
def running_fleet(words: list[str], folder: Path) -> Generator[subprocess.Popen[str]]:
    """The front end, once the host b has stored a trial."""
    with subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as running:
        deadline = time.monotonic() + 200
        place = folder / "fleet" / "b"
        while not ((place / "study.db").exists() and records(place)):
            assert time.monotonic() < deadline
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        yield running


def test_a_lost_host_is_left_out_and_completed_later(
    hosts: Hosts, iolab: Run, tmp_path: Path
) -> None:
    words = ["run", "study.toml", *hosts.flags(), "--out", "fleet"]
    with running_fleet(words, tmp_path) as running:
        hosts.stop("b")
        out, err = running.communicate(timeout=200)
    assert running.returncode == 1, err
    assert "iolab: b is left out: iolab-agent ended with exit code 255 during run_trial" in err
    assert "the same command with --resume restores it" in err
    assert "2 hosts" in " ".join(out.split())
    assert [records(tmp_path / "fleet" / name) for name in ("a", "c")] == [6, 6]
    assert records(tmp_path / "fleet" / "b") < 6
    gone = iolab(*words, "--resume")
    assert gone.returncode == 1
    assert gone.stderr.count("\n") == 1
    assert gone.stderr.startswith("iolab: b cannot be reached: ssh: connect to host 127.0.0.1")
    assert gone.stderr.endswith(f"`{hosts.ssh} b true` must work without a question\n")
    hosts.start("b")
    done = iolab(*words, "--resume")
    assert done.returncode == 0, done.stderr
    assert [records(tmp_path / "fleet" / name) for name in NAMES] == [6, 6, 6]
    assert "3 hosts" in " ".join(done.stdout.split())


def test_what_even_the_watchdog_left_is_restored_before_it_goes_on(
    hosts: Hosts, iolab: Run, tmp_path: Path
) -> None:
    words = ["run", "study.toml", *hosts.flags(), "--out", "fleet"]
    with running_fleet(words, tmp_path) as running:
        # The watchdog first: it would restore when the agent dies.
        below = {one: words_of(one) for one in descendants(hosts.servers["b"].pid)}
        watchdogs = [one for one, given in below.items() if given[1:2] == ["watchdog"]]
        agents = [one for one, given in below.items() if "iolab-agent" in given[0]]
        assert len(watchdogs) == 1
        for process in [*watchdogs, *agents]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _, err = running.communicate(timeout=200)
    assert running.returncode == 1, err
    assert "iolab: b is left out: iolab-agent ended with exit code 255" in err
    # Three hosts here are one machine: each of them sees what was left.
    refused = iolab("run", "study.toml", *hosts.flags("b"), "--out", "other")
    assert refused.returncode == 2, refused.stderr
    assert "not undone: `iolab restore --hosts b --ssh 'ssh -F" in refused.stderr
    done = iolab(*words, "--resume")
    assert done.returncode == 0, done.stderr
    assert ": restored " in done.stderr
    assert [records(tmp_path / "fleet" / name) for name in NAMES] == [6, 6, 6]
    nothing = iolab("restore", *hosts.flags())
    assert nothing.returncode == 0
    assert nothing.stdout.splitlines() == [f"{name}: nothing to restore" for name in NAMES]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_front_end_that_ends_leaves_nothing(
    hosts: Hosts, iolab: Run, tmp_path: Path, how: signal.Signals
) -> None:
    words = ["run", "study.toml", *hosts.flags(), "--out", "fleet"]
    with running_fleet(words, tmp_path) as running:
        running.send_signal(how)
        _, err = running.communicate(timeout=200)
    if how == signal.SIGINT:
        assert running.returncode == 130, err
        assert err.splitlines()[-1].startswith("iolab: stopped on request on a, b, c: finished")
    done = iolab(*words, "--resume")
    assert done.returncode == 0, done.stderr
    assert [records(tmp_path / "fleet" / name) for name in NAMES] == [6, 6, 6]


def test_a_directory_of_each_host(hosts: Hosts, iolab: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    compare = ("compare", "--test", "read", "--file-size", "4m", "--record-size", "4k,64k")
    fleet = ("--rounds", "2", "--design", "trials", "--quiet", *hosts.flags("a", "b"))
    done = iolab(*compare, "--on", f"dir:{tmp_path}/data", *fleet)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert list((tmp_path / "data").iterdir()) == []
    assert records(tmp_path / "iolab-out" / "record-size-1" / "a") == 4
    missing = iolab(*compare, "--on", f"dir:{tmp_path}/none", *fleet)
    assert missing.returncode != 0
    assert f"a is left out: {tmp_path}/none" in missing.stderr


def test_an_agent_of_another_version_is_refused(iolab: Run, hosts: Hosts, tmp_path: Path) -> None:
    other = hosts.folder / "iolab-agent"
    other.write_text("#!/bin/sh\necho iolab-agent 0.0.9\n")
    other.chmod(0o755)
    hosts.stop("b")
    hosts.start("b", f"IOLAB_AGENT={other}")
    done = iolab("run", "study.toml", *hosts.flags(), "--out", "fleet")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"b: {other} is iolab-agent 0.0.9, and this iolab goes with iolab-agent" in done.stderr
    assert not (tmp_path / "fleet").exists()
