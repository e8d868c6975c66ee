"""Fixtures that every test relies on: why a test is skipped, how long it may take, golden files,
seeds.

A privileged test carries a marker (`needs_root`, `needs_loop`, `needs_io_uring`,
`needs_chromium`, `needs_fio`, `needs_libreoffice`, `needs_sudo`, `needs_sshd`). Where the machine
cannot serve it, it is skipped with the reason, which `make test` lists and counts.

Tests of root share neither journals nor images with whatever else runs iolab on the machine: a test
that kills a run and its watchdog would make every other start be refused until `iolab restore`.
"""

import ctypes
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
CANNED = Path(__file__).parent / "report" / "fixtures" / "canned.py"
OLDER_STORES = Path(__file__).parent / "store" / "older_stores.py"
TIMEOUT_S_BY_MARKER = {
    "needs_loop": 300,
    "needs_chromium": 240,
    "needs_libreoffice": 240,
    "needs_sudo": 300,
    "needs_sshd": 600,
}
CAP_SYS_ADMIN_BIT = 21  # linux/capability.h
CLONE_NEWNS = 0x00020000  # linux/sched.h
# Where journals and marks of made files lie, and images: python/iolab/store/created_files.py and
# crates/iolab-agent/src/testbed/image.rs.
PRIVATE_PLACES = ("/var/lib/iolab", "/var/tmp")
SYS_IO_URING_SETUP = 425  # the same number on every architecture since Linux 5.1
IO_URING_PARAMS_BYTES = 120  # linux/io_uring.h: struct io_uring_params

# A failing random test prints the blob that repeats it; time limits are pytest's.
hypothesis.settings.register_profile("iolab", deadline=None, print_blob=True)
hypothesis.settings.load_profile("iolab")


def no_root() -> str | None:
    """Reason why this is no root, or None."""
    return None if os.geteuid() == 0 else "needs root"


@functools.cache
def no_loop() -> str | None:
    """Reason why loop devices cannot be attached and mounted, or None; changes nothing."""
    if reason := no_root():
        return f"{reason} for loop devices"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if capabilities is None or not int(capabilities[1], 16) >> CAP_SYS_ADMIN_BIT & 1:
        return "needs CAP_SYS_ADMIN for loop devices and mounts"
    try:
        os.close(os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"needs /dev/loop-control: {error.strerror}"
    return None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Give the tests of root journals and images of their own, in a private mount namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if no_loop() is not None or libc.unshare(CLONE_NEWNS) != 0:
        return
    subprocess.run(["mount", "--make-rslave", "/"], check=True)
    places = private_places()
    own = tempfile.mkdtemp(prefix="iolab-test-", dir="/var/tmp")
    session.config.add_cleanup(functools.partial(_leave_private_places, own, places))
    for place in places:
        folder = Path(own, Path(place).name)
        folder.mkdir()
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copystat(place, folder)
        subprocess.run(["mount", "--bind", str(folder), place], check=True)


def private_places() -> list[str]:
    """Places that these tests hide; one that holds this clone, or its programs, stays as it is."""
    needed = [ROOT, Path(sys.prefix), Path.cwd()]
    return [
        place
        for place in PRIVATE_PLACES
        if not any(path.resolve().is_relative_to(Path(place).resolve()) for path in needed)
    ]


def _leave_private_places(own: str, places: list[str]) -> None:
    """Remove the folder behind the private places."""
    for place in places[::-1]:
        subprocess.run(["umount", "--lazy", place], check=True)
    shutil.rmtree(own)


@functools.cache
def no_io_uring() -> str | None:
    """Reason why the kernel refuses an io_uring, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(IO_URING_PARAMS_BYTES)
    fd = libc.syscall(SYS_IO_URING_SETUP, 1, params)
    if fd < 0:
        return f"needs io_uring: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


@functools.cache
def no_sudo() -> str | None:
    """Reason why no user can be let attack through sudo, or None; changes nothing."""
    if reason := no_loop():
        return reason
    programs = ("sudo", "visudo", "setpriv", "nsenter", "unshare", "strace")
    if missing := [name for name in programs if shutil.which(name) is None]:
        return f"needs {', '.join(missing)} for attacks through sudo"
    if "NoNewPrivs:\t0" not in Path("/proc/self/status").read_text(encoding="ascii"):
        return "needs a process that may gain privileges (NoNewPrivs is set)"
    return None


@functools.cache
def no_sshd() -> str | None:
    """Reason why no hosts can be made that are reached over ssh, or None; changes nothing."""
    if reason := no_loop():
        return reason
    programs = ("sshd", "ssh", "ssh-keygen", "unshare")
    if missing := [name for name in programs if shutil.which(name) is None]:
        return f"needs {', '.join(missing)} for hosts over ssh"
    return None


def no_chromium() -> str | None:
    """Reason why no browser can draw a report, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return None if any(map(shutil.which, names)) else f"needs one of {', '.join(names)}"


def no_fio() -> str | None:
    """Reason why exported job files cannot be tried, or None."""
    return None if shutil.which("fio") else "needs fio"


def no_libreoffice() -> str | None:
    """Reason why no second program can open a workbook, or None."""
    return None if shutil.which("soffice") else "needs LibreOffice Calc (soffice)"


REASON_BY_MARKER: dict[str, Callable[[], str | None]] = {
    "needs_root": no_root,
    "needs_loop": no_loop,
    "needs_io_uring": no_io_uring,
    "needs_chromium": no_chromium,
    "needs_fio": no_fio,
    "needs_libreoffice": no_libreoffice,
    "needs_sudo": no_sudo,
    "needs_sshd": no_sshd,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what the machine cannot serve, and give slow kinds of tests their time."""
    for item in items:
        for marker, reason_of in REASON_BY_MARKER.items():
            if item.get_closest_marker(marker) is None:
                continue
            if reason := reason_of():
                item.add_marker(pytest.mark.skip(reason=reason))
            if marker in TIMEOUT_S_BY_MARKER and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S_BY_MARKER[marker]))


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with `tests/golden/<name>`; `make bless` (IOLAB_BLESS=1) rewrites it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("IOLAB_BLESS") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}; make bless writes it"
        assert text == path.read_text(encoding="utf-8"), f"differs from golden {name}"

    return compare


@pytest.fixture(scope="session")
def canned() -> ModuleType:
    """Return the module of canned studies."""
    return loaded("iolab_tests_canned", CANNED)


@pytest.fixture(scope="session")
def older_stores() -> ModuleType:
    """Return the module that makes stores of earlier schemas."""
    return loaded("iolab_tests_older_stores", OLDER_STORES)


def loaded(name: str, path: Path) -> ModuleType:
    """Return a module of helpers; loaded by path, so that any import mode works."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def digests_anew():
    """Return a function that makes the digests of a database again, as a forger would."""
    from iolab.store import digests, facts

    def rename(connection, table, old, new):
        if new == old:
            return
        for place, column in (
            (table, "digest"),
            ("fact_set", "facts_json"),
            ("record_facts", "fact_set"),
            ("record_facts", "more_json"),
        ):
            connection.execute(f"UPDATE {place} SET {column} = replace({column}, ?, ?)", (old, new))

    def make(connection):
        for table in ("digest", "fact", "fact_set", "record_facts"):
            for event in ("update", "delete"):
                connection.execute(f"DROP TRIGGER IF EXISTS {table}_no_{event}")
        connection.execute("DELETE FROM digest")
        for old, name, value in connection.execute("SELECT digest, name, value FROM fact"):
            rename(connection, "fact", old, facts.fact_digest(name, value))
        for old, text in connection.execute("SELECT digest, facts_json FROM fact_set").fetchall():
            rename(connection, "fact_set", old, facts.set_digest(text))
        for part in ("study", "session", "round", "record"):
            digests.store_digests(connection, part)

    return make
