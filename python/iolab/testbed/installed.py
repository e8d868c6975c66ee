"""Root's own copy of the agent: the only program that a rule for sudo may name.

A virtual environment belongs to its user, and whoever may change a program that runs as root is
root. So one copy lies where only root may write, in every directory down to it. What it does for
others is said by the policy file, which is root's as well; the agent reads it, not this process.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from iolab.errors import RefusedError, TestbedError
from iolab.pattern import pattern

INSTALLED_AGENT: Final = Path("/usr/local/libexec/iolab/iolab-agent")
POLICY_FILE: Final = Path("/etc/iolab/agent.toml")
AS_ROOT: Final = 'sudo "$(command -v iolab)"'
"""Command line as one types it: sudo's search path does not know a virtual environment."""
INSTALL_COMMAND: Final = f"{AS_ROOT} install-agent"

_DIRECTORY_MODE: Final = 0o755
_PROGRAM_MODE: Final = 0o755
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_PLAIN_USER: Final = pattern(r"[a-z_][a-z0-9_-]*")
_TEMPORARY: Final = pattern(r"\.iolab-agent\.[0-9a-f]{16}")
_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES: Final = 1 << 20
_VERSION_PATIENCE_S: Final = 10

DEFAULT_POLICY: Final = """\
# /etc/iolab/agent.toml: what iolab-agent does for a user who may start it through sudo.
#
# It must belong to root, and nobody else may write it or a directory above it. Without this file,
# and for each key that it does not have, the values below hold. It governs only users who start the
# agent by itself; root, and `sudo iolab ...` of somebody who may, need no policy.

# Kinds of testbeds. "B": private loop devices on image files that the agent makes. "A+": a
# directory of the user's, with knobs of the devices below it. "C": whole devices, which are erased.
classes = ["B"]

# Class B: directories in or below which image files may be made.
image_dirs = ["/var/tmp"]

# Class B: how much the image files of a testbed may have together.
max_bytes = "64 GiB"

# Class A+: directories in or below which a user's directory may lie.
directories = []

# Classes A+ and C: devices, such as "sdb" or "/dev/disk/by-id/...", whose knobs may change and
# which, with class C, may be erased.
devices = []

# Knobs by name. "device" stands for all knobs of a tested device, "drop_caches" for dropping the
# page cache. Others act on the whole machine: "vm.dirty_ratio", "cpu.governor" and so on.
knobs = ["device", "drop_caches"]
"""
"""Policy of the agent without a policy file, as that file; a test lets the agent read it."""


def version_of(agent: Path) -> str:
    """Version that the program tells, such as ``iolab-agent 0.1.0``.

    Raises
    ------
    TestbedError : it says nothing of the kind.
    """
    try:
        done = subprocess.run(
            [str(agent), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_PATIENCE_S,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise TestbedError(f"{agent} does not tell its version: {error}", INSTALL_COMMAND) from None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 2 or words[0] != INSTALLED_AGENT.name:
        raise TestbedError(f"{agent} does not tell its version", INSTALL_COMMAND)
    return " ".join(words)


def install(agent: Path) -> str:
    """Copy `agent` to where only root may write; returns its version.

    Raises
    ------
    RefusedError : others could change the copy, or a directory above it.
    TestbedError : it is not an agent, or could not be copied.
    """
    version = version_of(agent)
    try:
        with _owned_directory(INSTALLED_AGENT.parent, is_made=True) as directory:
            _copy(agent, directory, version)
    except OSError as error:
        raise TestbedError(f"{INSTALLED_AGENT} cannot be written: {error}") from None
    return version


def remove() -> bool:
    """Remove what `install` made; whether there was a copy.

    Raises
    ------
    RefusedError : others can change a directory above it, or it is not a file of root's.
    TestbedError : it could not be removed.
    """
    try:
        with _owned_directory(INSTALLED_AGENT.parent, is_made=False) as directory:
            with os.scandir(directory) as entries:
                names = [entry.name for entry in entries if _is_ours(entry.name)]
            was_there = INSTALLED_AGENT.name in names
            for name in names:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != 0:
                    raise RefusedError(
                        f"{INSTALLED_AGENT.parent / name} was not made by `iolab install-agent`",
                        "remove it by hand",
                    )
                os.unlink(name, dir_fd=directory)
        with suppress(OSError):  # Somebody else has put something there.
            INSTALLED_AGENT.parent.rmdir()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise TestbedError(f"{INSTALLED_AGENT} cannot be removed: {error}") from None
    return was_there


def _is_ours(name: str) -> bool:
    return name == INSTALLED_AGENT.name or _TEMPORARY.fullmatch(name) is not None


def sudoers_line(user: str) -> str:
    """The line by which `user` may start the installed copy, and nothing else, as root.

    Raises
    ------
    TestbedError : there is no such user, or it is root.
    """
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise TestbedError(f"there is no user '{user}'", "see `getent passwd`") from None
    if entry.pw_uid == 0:
        raise TestbedError(f"{user} is root and needs no rule", "name another with --user NAME")
    # Other names would have to be quoted as sudo wants it; numbers need not.
    who = user if _PLAIN_USER.fullmatch(user) else f"#{entry.pw_uid}"
    # The empty string forbids arguments.
    return f'{who} ALL=(root) NOPASSWD: {INSTALLED_AGENT} ""'


@contextmanager
def _owned_directory(path: Path, *, is_made: bool) -> Generator[int]:
    """Descriptor of a directory that only root may change, as all above it, each one looked at."""
    descriptor = os.open("/", _OPEN_DIRECTORY)
    try:
        _check_owned(descriptor, Path("/"))
        for folder in [*reversed(path.parents), path][1:]:
            descriptor = _step(descriptor, folder, is_made=is_made)
        yield descriptor
    finally:
        os.close(descriptor)


def _step(above: int, folder: Path, *, is_made: bool) -> int:
    """Descriptor of `folder` in place of the one above it, made if it is missing."""
    if is_made:
        with suppress(FileExistsError):
            os.mkdir(folder.name, 0o700, dir_fd=above)
            made = os.open(folder.name, _OPEN_DIRECTORY, dir_fd=above)
            os.fchown(made, 0, 0)
            os.fchmod(made, _DIRECTORY_MODE)
            os.close(made)
    try:
        below = os.open(folder.name, _OPEN_DIRECTORY, dir_fd=above)
    except NotADirectoryError:
        raise RefusedError(
            f"{folder} is a link or no directory", "let it be a directory of root's"
        ) from None
    try:
        _check_owned(below, folder)
    except RefusedError:
        os.close(below)
        raise
    os.close(above)
    return below


def _check_owned(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != 0:
        raise RefusedError(
            f"{path} does not belong to root, so that its owner could put another program there",
            f"chown root {path}",
        )
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise RefusedError(
            f"others than root may write to {path}, so that they could put another program there",
            f"chmod go-w {path}",
        )


def _copy(agent: Path, directory: int, version: str) -> None:
    """Write, check and rename a copy, under a name that nobody can foresee."""
    temporary = f".{INSTALLED_AGENT.name}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o700, dir_fd=directory), "wb") as copy:
            with agent.open("rb") as source:
                while chunk := source.read(_CHUNK_BYTES):
                    copy.write(chunk)
            copy.flush()
            os.fchown(copy.fileno(), 0, 0)
            os.fchmod(copy.fileno(), _PROGRAM_MODE)
            os.fsync(copy.fileno())
        if version_of(INSTALLED_AGENT.parent / temporary) != version:
            raise TestbedError(f"{agent} changed while it was copied", "try again")
        os.replace(temporary, INSTALLED_AGENT.name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
