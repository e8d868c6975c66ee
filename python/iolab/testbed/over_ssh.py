"""The agent on another host: found or copied there, of our version, started over ssh.

Nothing else of iolab is needed there. The protocol is that of a local agent: it reads requests on
its standard input, and when that ends, because the connection did, it restores the machine.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import IO, Final

from iolab.digest import sha256
from iolab.errors import TestbedError
from iolab.frozen import frozen, replace
from iolab.readable import wait_readable
from iolab.testbed.command import AGENT_NAME, AGENT_VARIABLE, find_agent
from iolab.testbed.hosts import Clock, Host
from iolab.testbed.installed import INSTALLED_AGENT, version_of

_PATIENCE_S: Final = 60.0
_COPY_PATIENCE_S: Final = 600.0
_UNREACHED: Final = 255
"""Exit code of ssh itself (ssh(1), EXIT STATUS)."""
_MARK: Final = "iolab-found"
"""First word of each line of the look-around: login shells may print lines of their own, which
would stand among the agent's answers."""
_EXCHANGES: Final = 9
_EXCHANGE_PATIENCE_S: Final = 5.0
_DIGITS_OF_NS: Final = 19
_TELL_TIME: Final = "while read -r line; do date +%s%N; done"
_LOOK_AROUND: Final = f"""
LC_ALL=C; export LC_ALL
tell() {{ printf '{_MARK} %s %s\\n' "$1" "$2"; }}
version() {{ "$@" --version </dev/null 2>&1 | head -n 1; }}
tell uid "$(id -u)"
tell machine "$(uname -m)"
tell boot "$(cat /proc/sys/kernel/random/boot_id)"
agent=${{{AGENT_VARIABLE}:-}}
[ -n "$agent" ] || agent=$(command -v {AGENT_NAME})
if [ -n "$agent" ]; then tell agent "$agent"; tell version "$(version "$agent")"; fi
if [ -x {INSTALLED_AGENT} ]; then tell installed "$(version {INSTALLED_AGENT})"; fi
if [ "$(id -u)" != 0 ] && sudo -n -- {INSTALLED_AGENT} </dev/null >/dev/null 2>&1
then tell sudo yes; fi
copy="${{XDG_CACHE_HOME:-$HOME/.cache}}/iolab/agent/DIGEST/{AGENT_NAME}"
tell copy "$copy"
if [ -x "$copy" ]; then tell copied "$(version "$copy")"; fi
"""
_COPY: Final = (
    'umask 077; d=$(dirname "$1"); t="$d/.new.$(uname -n).$$"; '
    'mkdir -p "$d" && cat > "$t" && [ "$(wc -c < "$t")" -eq "$2" ] && chmod 700 "$t" && '
    'mv -f "$t" "$1" || { rm -f "$t"; exit 1; }'
)


@frozen
class _Ours:
    """The agent of this installation."""

    content: bytes
    version: str
    digest: str


def connect(host: Host, *, needs_root: bool) -> Host:
    """The host with its agent and its clock; the agent is copied if there is none.

    Raises
    ------
    TestbedError : the host is not reached, or its agent is another one or may not be root.
    """
    path = find_agent()
    content = path.read_bytes()
    ours = _Ours(content, version_of(path), sha256(content).hexdigest())
    found = _look_around(host, ours)
    agent = _agent(host, found, ours, needs_root=needs_root)
    return replace(host, agent=agent, boot_id=found.get("boot", ""), clock=_measured_clock(host))


def _look_around(host: Host, ours: _Ours) -> dict[str, str]:
    """Findings on a host, by name: its user, its machine, its agents."""
    script = _LOOK_AROUND.replace("DIGEST", ours.digest)
    done = _done(host, ("sh", "-s"), script.encode())
    lines = done.stdout.decode(errors="replace").splitlines()
    split = (line.split(" ", 2) for line in lines)
    found = {words[1]: words[2] for words in split if words[0] == _MARK and len(words) == 3}
    if "copy" not in found:
        raise TestbedError(
            f"{host.name} does not run a shell for us: {_last_line(done.stderr) or 'no answer'}",
            f"`{host.shown('sh -c true')}` must work",
        )
    said = next((line for line in lines if not line.startswith(f"{_MARK} ")), None)
    if said is not None:
        raise TestbedError(
            f"{host.name} prints '{said[:60]}' before a command begins, where only answers of the "
            "agent may stand",
            "let its shell be silent when it is not interactive (scp needs that, too)",
        )
    return found


def _agent(host: Host, found: dict[str, str], ours: _Ours, *, needs_root: bool) -> tuple[str, ...]:
    """Command of the agent there, which is of our version."""
    if needs_root and found["uid"] != "0":
        return _agent_of_root(host, found, ours)
    if agent := found.get("agent"):
        _check_version(host, agent, found.get("version", ""), ours)
        return (agent,)
    copy = found["copy"]
    if found.get("copied") != ours.version:
        _copy(host, found["machine"], copy, ours)
    return (copy,)


def _agent_of_root(host: Host, found: dict[str, str], ours: _Ours) -> tuple[str, ...]:
    """Command of root's own copy, through sudo."""
    if "installed" not in found:
        raise TestbedError(
            f"{host.name}: this needs root, and you are not root there",
            f"connect as root, as in --hosts root@{host.name.rpartition('@')[2]}, or let root "
            f"install {INSTALLED_AGENT} there",
        )
    _check_version(host, str(INSTALLED_AGENT), found["installed"], ours)
    if found.get("sudo") != "yes":
        raise TestbedError(
            f"{host.name}: this needs root, and sudo there does not start {INSTALLED_AGENT} "
            "without a password",
            "let root add a rule for it there (`iolab install-agent` prints one)",
        )
    return ("sudo", "-n", "--", str(INSTALLED_AGENT))


def _check_version(host: Host, agent: str, version: str, ours: _Ours) -> None:
    if version != ours.version:
        raise TestbedError(
            f"{host.name}: {agent} is {version or 'no agent'}, and this iolab goes with "
            f"{ours.version}",
            "install the same version there, or take it away: then ours is copied",
        )


def _copy(host: Host, machine: str, copy: str, ours: _Ours) -> None:
    """Copy our agent to a host, under a name that no other content has."""
    if machine != os.uname().machine:
        raise TestbedError(
            f"{host.name} is {machine}, and this {AGENT_NAME} is for {os.uname().machine}",
            f"install {AGENT_NAME} of the same version there, on its search path",
        )
    words = ("sh", "-c", _COPY, "sh", copy, str(len(ours.content)))
    done = _done(host, words, ours.content, _COPY_PATIENCE_S)
    if done.returncode != 0:
        said = _last_line(done.stderr)
        raise TestbedError(
            f"{host.name}: {AGENT_NAME} cannot be copied to {copy}{f': {said}' if said else ''}",
            "make room there, or set XDG_CACHE_HOME there to a directory that may be written",
        )
    told = _done(host, (copy, "--version"), b"")
    version = told.stdout.decode(errors="replace").strip()
    if version != ours.version:
        why = _last_line(told.stderr) or version or f"exit code {told.returncode}"
        raise TestbedError(
            f"{host.name}: the copy of {AGENT_NAME} does not start there: {why}",
            f"install one that was built for that system, of version {ours.version.split()[-1]}",
        )


def _done(
    host: Host, words: tuple[str, ...], given: bytes, patience_s: float = _PATIENCE_S
) -> subprocess.CompletedProcess[bytes]:
    """Result of a command there.

    Raises
    ------
    TestbedError : the host was not reached, or did not answer.
    """
    command = host.command(*words)
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, check=False, timeout=patience_s
        )
    except OSError as error:
        raise TestbedError(
            f"{command[0]} cannot be started: {error.strerror}",
            "install OpenSSH's client, or name another command with --ssh",
        ) from None
    except subprocess.TimeoutExpired:
        raise TestbedError(
            f"{host.name} did not answer within {patience_s:.0f} s", "leave it out of --hosts"
        ) from None
    if done.returncode == _UNREACHED:
        raise TestbedError(
            f"{host.name} cannot be reached: {_last_line(done.stderr) or 'ssh does not say why'}",
            f"`{host.shown('true')}` must work without a question",
        )
    return done


def _last_line(said: bytes) -> str:
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


# Clocks.


def _measured_clock(host: Host) -> Clock | None:
    """Clock of a host, from the fastest of several exchanges; None where `date` has no ns."""
    process = subprocess.Popen(
        host.command("sh", "-c", _TELL_TIME),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    assert process.stdin is not None, "the process is started with a pipe"
    assert process.stdout is not None, "the process is started with a pipe"
    try:
        found = [_exchanged(process.stdin, process.stdout) for _ in range(_EXCHANGES)]
    except OSError:
        return None
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait()
    known = [clock for clock in found if clock is not None]
    return min(known, key=lambda clock: clock.uncertainty_ns) if known else None


def _exchanged(to: IO[bytes], answers: IO[bytes]) -> Clock | None:
    """Ask a host once for its time."""
    began_ns = time.time_ns()
    to.write(b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        if not wait_readable([answers], _EXCHANGE_PATIENCE_S):
            raise TimeoutError
        chunk = os.read(answers.fileno(), 4096)
        if not chunk:
            raise BrokenPipeError
        answer += chunk
    ended_ns = time.time_ns()
    told = answer.strip()
    if not (told.isdigit() and len(told) == _DIGITS_OF_NS):
        return None
    uncertainty_ns = (ended_ns - began_ns + 1) // 2
    return Clock(int(told) - (began_ns + ended_ns) // 2, uncertainty_ns)
