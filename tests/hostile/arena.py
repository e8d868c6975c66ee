"""A machine of the attack's own: private mounts over the real one, a real sudo, two users.

Everything that the suite writes lies in a mount namespace: `/etc` is a copy (with two users and a
rule for sudo), `/usr/local`, `/home`, `/run`, `/tmp` and `/var/lib/iolab` are empty file systems,
`/var/tmp` is a directory of the test. Outside, the real ones lie untouched; that is looked at, too.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import iolab
from iolab.testbed.command import find_agent
from iolab.testbed.installed import INSTALLED_AGENT

MALLORY = "mallory"
ALICE = "alice"
CAROL = "carol"
BOB = "bob"
USERS = {MALLORY: 61001, ALICE: 61002, CAROL: 61003, BOB: 61004}
"""Mallory attacks, and alice's things are attacked; both may start the agent by sudo, and nothing
else. Carol's administrator was careless (any arguments, a kept environment); bob may do anything.
"""
_RULES = {
    CAROL: f"""\
Defaults:carol !env_reset, !secure_path
Defaults:carol !env_delete
carol ALL=(root) NOPASSWD: {INSTALLED_AGENT}
""",
    BOB: "bob ALL=(ALL) NOPASSWD: ALL\n",
}
"""Rules in place of the one that `iolab install-agent` prints."""
HOMES = "/home"
GUARD = "/usr/local/guard"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON = f"{sys.prefix}/bin/python"
PACKAGE = str(Path(iolab.__file__).parents[1])

_SETUP = r"""
set -eu
place=$1 agent=$2 home=$3
shift 3
mkdir -p "$place/etc" "$place/vartmp" "$place/local" "$place/home" /var/lib/iolab
chmod 1777 "$place/vartmp"
mount -t tmpfs -o mode=0755 tmpfs "$place/etc"
cp -a /etc/. "$place/etc/"
mount --bind "$place/etc" /etc
mount --bind "$place/vartmp" /var/tmp
# Python may lie in /usr/local or in root's home, where the users cannot go: that much is shown.
mount --bind /usr/local "$place/local"
mount --bind "$home" "$place/home"
mount -t tmpfs -o mode=0755 tmpfs /usr/local
for path in "$place"/local/*/; do
    name=$(basename "$path")
    [ "$name" != libexec ] || continue
    mkdir "/usr/local/$name"
    mount --bind "$path" "/usr/local/$name"
    mount -o remount,bind,ro "/usr/local/$name"
done
mount -t tmpfs -o mode=0755 tmpfs "$home"
for path in "$@"; do
    case $path in
        "$home"/*)
            mkdir -p "$path"
            mount --bind "$place/home/${path#"$home"/}" "$path"
            mount -o remount,bind,ro "$path"
            ;;
    esac
done
for path in /run /home /var/lib/iolab; do mount -t tmpfs -o mode=0755 tmpfs "$path"; done
chmod 0700 /var/lib/iolab
cp "$agent" /run/iolab-agent
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /
echo ready
exec sleep 3600
"""

_USERS = r"""
set -eu
umask 022
python=$1 package=$2
shift 2
rm -rf /etc/sudoers.d/* /etc/iolab
for entry in "$@"; do
    name=${entry%%:*} uid=${entry##*:}
    echo "$name:x:$uid:$uid::/home/$name:/bin/sh" >> /etc/passwd
    echo "$name:*:20000:0:99999:7:::" >> /etc/shadow
    echo "$name:x:$uid:" >> /etc/group
    mkdir -m 0755 "/home/$name"
    chown "$uid:$uid" "/home/$name"
    env SUDO_USER="$name" IOLAB_AGENT=/run/iolab-agent PYTHONPATH="$package" \
        PYTHONDONTWRITEBYTECODE=1 "$python" -m iolab.cli install-agent > /tmp/said
    grep '^[^ ]* ALL=' /tmp/said > "/etc/sudoers.d/$name"
    chmod 0440 "/etc/sudoers.d/$name"
done
"""

_GUARD = r"""
set -eu
mkdir -p -m 0755 "$1"
cd "$1"
echo 'only root knows' > secret && chmod 0600 secret
echo 'everybody reads' > public && chmod 0644 public
mkdir -m 0700 roots && echo deep > roots/file && mkdir roots/empty
mkdir -m 0755 alices && echo "alice's" > alices/file && chmod 0600 alices/file
mkdir -m 0755 alices/Bonnie.4711 && echo kept > alices/Bonnie.4711/file
chown -R alice:alice alices
mkdir -m 1777 open && ln -s ../secret open/link && ln -s ../roots open/directory
echo original > "$2" && chown alice:alice "$2"
"""


class Arena:
    """The namespace; ends with `close`."""

    def __init__(self, place: Path) -> None:
        agent = find_agent()  # May lie in root's home, too.
        shown = [sys.base_prefix, sys.prefix, PACKAGE, str(agent.parent)]
        words = [str(place), str(agent), str(Path.home()), *shown]
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", _SETUP, "sh", *words],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._furnish()
        except BaseException:
            self.close()
            raise

    def _furnish(self) -> None:
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n", "the namespace could not be set up"
        entries = [f"{name}:{uid}" for name, uid in USERS.items()]
        self.shell(_USERS, PYTHON, PACKAGE, *entries)
        for name, rule in _RULES.items():
            path = self.inside(f"/etc/sudoers.d/{name}")
            path.write_text(rule)
            path.chmod(0o440)
        self.shell("visudo -c -q")
        self.shell(_GUARD, GUARD, f"{HOMES}/{ALICE}/file")

    def close(self) -> None:
        """Let the namespace go, with all that is mounted in it."""
        self._holder.kill()
        self._holder.communicate()

    def inside(self, path: str) -> Path:
        """The same path, from outside the namespace."""
        return Path(f"/proc/{self._holder.pid}/root") / path.lstrip("/")

    def shell(self, script: str, *words: str, user: str | None = None) -> str:
        """Output of a shell script in the namespace; it must succeed."""
        done = self.run(["sh", "-c", script, "sh", *words], user=user)
        assert done.returncode == 0, f"{script}: {done.stderr.decode()}"
        return done.stdout.decode()

    def run(
        self,
        command: Sequence[str],
        *,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float = 60,
        stdin: bytes = b"",
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the namespace to its end."""
        return subprocess.run(
            self.argv(command, user=user, environment=environment),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    def argv(
        self,
        command: Sequence[str],
        *,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Words that run `command` in the namespace, as `user` or as root."""
        home = f"{HOMES}/{user}" if user else "/root"
        variables = {"PATH": SEARCH_PATH, "HOME": home, **(environment or {})}
        enter = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/", "--"]
        become: list[str] = []
        if user:
            ids = [f"--reuid={USERS[user]}", f"--regid={USERS[user]}"]
            become = ["setpriv", *ids, "--init-groups", "--"]
        assign = [f"{name}={value}" for name, value in variables.items()]
        return [*enter, *become, "env", "-i", *assign, *command]

    def iolab(self, *words: str, user: str) -> subprocess.CompletedProcess[bytes]:
        """Run `iolab` as a user, in the user's home."""
        return self.run(["sh", "-c", iolab_script(*words)], user=user, timeout=100)


AGENT_BY_SUDO = ("sudo", "-n", "--", str(INSTALLED_AGENT))


def iolab_script(*words: str, before: str = "") -> str:
    """Shell script that runs `iolab` at home, after `before`, which may be `sudo -n`."""
    command = shlex.join([PYTHON, "-m", "iolab.cli", *words])
    variables = f"PYTHONPATH={shlex.quote(PACKAGE)} PYTHONDONTWRITEBYTECODE=1 COLUMNS=80"
    return f"cd && exec {before} env {variables} IOLAB_AGENT=/run/iolab-agent {command}"
