"""Hosts that are measured over ssh: how they are named, and how ssh is called for each.

A host is written as for ssh(1): ``NAME``, ``USER@NAME``, ``NAME:PORT``, ``[IPv6]:PORT``, or an
alias of ssh's configuration. What is written is also the name of its results directory.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.pattern import pattern

DEFAULT_SSH: Final = "ssh"
_OPTIONS: Final = (
    "-T",
    *("-e", "none"),
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=20"),
    *("-o", "ServerAliveInterval=10"),
    *("-o", "ServerAliveCountMax=3"),
)
"""No terminal, no escape character, no questions; a silent host is lost after 30 s. Of an option
that is given twice ssh takes the first (ssh_config(5)), so those of the user come before these."""
_NAME: Final = pattern(
    r"(?:(?P<user>[a-z0-9_][a-z0-9_.+\\$-]*)@)?"
    r"(?:\[(?P<literal>[0-9a-f:.]+(?:%[a-z0-9_.-]+)?)\]|(?P<host>[a-z0-9_][a-z0-9_.-]*))"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII | re.IGNORECASE,
)
_NAME_MAX: Final = 200
_PORT_MAX: Final = 65_535


@frozen
class Clock:
    """Clock of a host against that of this machine."""

    offset_ns: int
    """Its time minus ours."""
    uncertainty_ns: int
    """Half of the round trip: the true offset is not farther away than this."""


@frozen
class Host:
    """A host, and the ways to it."""

    name: str
    """As it was typed; also the name of its results directory."""
    ssh: tuple[str, ...]
    """Command that reaches hosts, as it was typed."""
    address: tuple[str, ...]
    """Last words of that command: the port, if one was typed, and the address."""
    agent: tuple[str, ...] = ()
    """Command that starts the agent there; empty before it was looked for."""
    boot_id: str = ""
    """The kernel's name for this start of its machine, which containers share; empty: unknown."""
    clock: Clock | None = None
    """None if it could not be measured."""

    def command(self, *words: str) -> list[str]:
        """Command line here that runs `words` there, in place of the login shell."""
        *port, name = self.address
        return [*self.ssh, *_OPTIONS, *port, "--", name, f"exec {shlex.join(words)}"]

    def shown(self, words: str) -> str:
        """Command that a person may type to run `words` there."""
        return shlex.join([*self.ssh, *self.address, words])

    @property
    def agent_command(self) -> list[str]:
        """Command line here that starts the agent there."""
        return self.command(*self.agent)

    @property
    def restored_by(self) -> str:
        """Command that undoes there what a killed run left."""
        ssh = shlex.join(self.ssh)
        own = "" if ssh == DEFAULT_SSH else f" --ssh {shlex.quote(ssh)}"
        return f"iolab restore --hosts {shlex.quote(self.name)}{own}"

    def description(self) -> Mapping[str, object]:
        """Name and clock, as its results keep them."""
        clock = self.clock
        return {
            "name": self.name,
            "clock_offset_ns": None if clock is None else clock.offset_ns,
            "clock_uncertainty_ns": None if clock is None else clock.uncertainty_ns,
        }


def parse_hosts(text: str, ssh: str | None) -> tuple[Host, ...]:
    """The hosts of ``--hosts A,B,C``.

    Parameters
    ----------
    text : names, separated by commas.
    ssh : command to be used in place of ``ssh``, with its options.

    Raises
    ------
    IolabError : no name, a name that ssh would not take for one, or a host twice.
    """
    words = _ssh_words(ssh)
    found = dict[tuple[str, str], Host]()
    for part in text.split(","):
        name = part.strip()
        key, host = _host(name, words, text)
        if key in found:
            other = found[key].name
            same = f"{name} is named twice" if other == name else f"{other} and {name} are one host"
            raise IolabError(f"--hosts: {same}", "name each host once")
        found[key] = host
    return tuple(found.values())


def _ssh_words(ssh: str | None) -> list[str]:
    try:
        words = shlex.split(DEFAULT_SSH if ssh is None else ssh)
    except ValueError as error:
        raise IolabError(f"--ssh {ssh}: {error}", "as in --ssh 'ssh -F FILE'") from None
    if not words or not words[0].strip():
        raise IolabError("--ssh names no command", "as in --ssh 'ssh -F FILE'")
    return words


def _host(name: str, ssh: list[str], typed: str) -> tuple[tuple[str, str], Host]:
    """Key that tells a host from others, and the host."""
    if not name:
        what = "no host is named" if not typed.strip(" ,") else f"{typed}: a name is empty"
        raise IolabError(f"--hosts: {what}", "as in --hosts db1,db2,db3")
    # An address of IPv6 has colons of its own: without brackets there is no port behind it.
    bracketed = f"[{name}]" if name.count(":") > 1 and "[" not in name and "@" not in name else name
    match = _NAME.fullmatch(bracketed) if len(name) <= _NAME_MAX else None
    port = "" if match is None else match["port"] or ""
    if match is None or (port and not 0 < int(port) <= _PORT_MAX):
        raise IolabError(
            f"--hosts: '{name[:_NAME_MAX]}' is no name of a host",
            "use NAME, USER@NAME or NAME:PORT, or a name of ~/.ssh/config",
        )
    address = match["literal"] or match["host"]
    user = f"{match['user']}@" if match["user"] else ""
    way = (*(("-p", port) if port else ()), f"{user}{address}")
    return (address.lower(), port), Host(name, tuple(ssh), way)
