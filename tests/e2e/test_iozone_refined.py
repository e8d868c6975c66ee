"""Refining options of IOzone's command line, our system calls against those of the original.

Each recording in `tests/golden/iozone/trace_*.txt` begins with the command that was traced. The
same command runs here through `iolab iozone` with the agent under strace; what is compared are the
calls on the test file between its opening and its closing.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shlex
import shutil
import time
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store
from iolab.testbed.command import find_agent

from .strace import sessions

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "iozone"
CALLS: Final = (
    "openat,creat,close,read,write,lseek,mmap,madvise,fcntl,fsync,ftruncate,unlink,clock_nanosleep"
)
pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
    pytest.mark.timeout(60),
]
Transfers = list[tuple[str, int, int]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; the agent runs under strace, its log lies beside."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    agent = tmp_path / "agent"
    log = tmp_path / "log"
    strace = f"{shutil.which('strace')} -ff -s 0 -e trace={CALLS} -o {log}"
    agent.write_text(f'#!/bin/sh\nexec {strace} {find_agent()} "$@"\n')
    agent.chmod(0o755)
    monkeypatch.setenv("IOLAB_AGENT", str(agent))
    return place


def iozone(work: Path, words: str, stored: str = "stored") -> str:
    """Run a command, its study stored beside the working directory; answers what it printed."""
    out, err = io.StringIO(), io.StringIO()
    place = str(work.parent / stored)
    code = main(["iozone", "--out", place, *shlex.split(words)], console=Console(out, err))
    assert code == 0, err.getvalue()
    return out.getvalue()


def our_logs(work: Path) -> list[str]:
    """Output of strace, a text per process."""
    return [path.read_text() for path in sorted(work.parent.glob("log.*"))]


def ours(work: Path, name: str) -> list[Transfers]:
    """Transfers of each opening of a file."""
    return [s.transfers for text in our_logs(work) for s in sessions(text, name)]


def recorded(trace: str) -> tuple[str, str]:
    """The command of a recording, and its calls."""
    head, _, calls = (GOLDEN / f"trace_{trace}.txt").read_text().partition("\n")
    command = re.split(r" {3}", head.removeprefix("# iozone "))[0]
    return command, calls


@pytest.mark.parametrize("trace", ["jitter_K", "jitter_KI"])
def test_jumps_of_the_read_test_are_the_recorded_ones(trace: str, work: Path) -> None:
    command, calls = recorded(trace)
    iozone(work, command)
    wanted = [session.transfers for session in sessions(calls, "t.tmp")]
    found = ours(work, "t.tmp")
    assert found == wanted
    small = [at for call, at, size in found[-1] if call == "read" and size == found[-1][1][2]]
    assert small[0] == 0  # The priming read comes first, then page 0 and page 1.


def test_a_replay_makes_the_recorded_transfers(work: Path) -> None:
    command, calls = recorded("telemetry_XY")
    for file in ("w.tel", "r.tel"):
        shutil.copy(GOLDEN / f"telemetry_XY.{file}", work / file)
    iozone(work, command)
    # The original reads its telemetry through another descriptor, which `sessions` leaves out.
    wanted = [session.transfers for session in sessions(calls, "t.tmp")]
    assert ours(work, "t.tmp") == wanted


def sequence(text: str, name: str) -> list[str]:
    """Names of the calls on a file, and sleeps, while it is open for the first time to write."""
    found = list[str]()
    fd = None
    for line in text.splitlines():
        if opened := re.search(r'openat\(AT_FDCWD, "([^"]*)", O_RDWR.* = (\d+)$', line):
            if opened[1].endswith(name):
                fd, found = opened[2], []
        elif fd is not None and re.search(rf"close\({fd}\)", line):
            if "write" in found:
                break
            fd = None  # It was only made.
        elif fd is not None and (call := re.search(rf"\b(write|fsync)\({fd}\b", line)):
            found.append(call[1])
        elif fd is not None and "clock_nanosleep" in line and found:
            found.append("sleep")
    return found


def rates_of(work: Path, command: str, printed: str) -> Iterator[int]:
    """Rates of a run and, as long as they are asked for, of up to 20 further ones."""
    for n in range(20):
        yield int(printed.split("freread\n")[1].split()[2])
        printed = iozone(work, command, f"stored{n}")


def test_a_burst_ends_with_a_flush_and_a_pause(work: Path) -> None:
    command, calls = recorded("burst_b")
    printed = iozone(work, command)
    assert "\tBurst size set to 32 Kbytes.\n\tBurst sleep duration set to 5 msec\n" in printed
    wanted = sequence(calls, "t.tmp")
    found = next(s for text in our_logs(work) if (s := sequence(text, "t.tmp")).count("write"))
    burst = ["write", "write", "fsync", "sleep"]
    assert wanted[1:13] == burst * 3  # The first is the flush after opening.
    assert found[1:13] == burst * 3
    # Four pauses of 5 ms are not counted, or it would always be less, however quiet the machine.
    # Issue 14, point 9: one slow flush beside other work failed it, so one quick run is enough.
    assert any(rate > 128 / 0.02 for rate in rates_of(work, command, printed))


def test_advice_reaches_the_kernel(work: Path) -> None:
    command, calls = recorded("advise_A")
    iozone(work, command)
    advice = re.compile(r"madvise\(0x[0-9a-f]+, 65536, (MADV_\w+)\) = 0")
    found = [match for text in our_logs(work) for match in advice.findall(text)]
    assert found == advice.findall(calls) == ["MADV_RANDOM", "MADV_RANDOM"]


def test_what_a_file_holds_is_kept_until_it_is_overwritten(work: Path) -> None:
    command, calls = recorded("keep_N")
    content = os.urandom(200_000)
    (work / "t.tmp").write_bytes(content)
    inode = (work / "t.tmp").stat().st_ino
    # The file is the user's: the original overwrites it without a word, ours when it is named.
    iozone(work, f"--overwrite t.tmp {command}")
    found = (work / "t.tmp").read_bytes()
    assert (work / "t.tmp").stat().st_ino == inode
    assert found[65536:] == content[65536:]
    assert found[:65536] != content[:65536]
    opened = [line for text in our_logs(work) for line in text.splitlines() if "t.tmp" in line]
    assert not [line for line in opened if "O_TRUNC" in line or "unlink" in line]
    assert ours(work, "t.tmp") == [session.transfers for session in sessions(calls, "t.tmp")]


def test_a_foreign_file_is_only_read(work: Path) -> None:
    command, calls = recorded("foreign_E")
    precious = work / "precious"
    precious.write_bytes(os.urandom(65536))
    digest = hashlib.sha256(precious.read_bytes()).hexdigest()
    precious.chmod(0o444)
    iozone(work, command)
    assert hashlib.sha256(precious.read_bytes()).hexdigest() == digest
    flags = {s.flags for text in our_logs(work) for s in sessions(text, "precious")}
    assert all("O_RDONLY" in flag and "O_CREAT" not in flag for flag in flags)
    wanted = [session.transfers for session in sessions(calls, "precious")]
    assert [one for one in ours(work, "precious") if one] == wanted[:3]


def test_a_foreign_file_outlives_a_failure(work: Path) -> None:
    precious = work / "precious"
    precious.write_bytes(b"years" * 4000)
    out, err = io.StringIO(), io.StringIO()
    words = ["iozone", "--out", str(work.parent / "stored"), "-+E", "-i", "1", "-s", "1m"]
    code = main([*words, "-f", "precious"], console=Console(out, err))
    assert code == 1
    assert "of file precious gave" in err.getvalue()
    assert "the file ends there" in err.getvalue()
    assert "dmesg" not in err.getvalue()
    assert precious.read_bytes() == b"years" * 4000


def locks(text: str) -> list[tuple[str, int, int]]:
    """Byte ranges that a process locked or gave back, in order."""
    pattern = r"F_(?:OFD_)?SETLKW?, \{l_type=F_(\w+), .*l_start=(\d+), l_len=(\d+)"
    found = [(kind, int(at), int(size)) for kind, at, size in re.findall(pattern, text)]
    return [one for one in found if one[2] > 0]  # Length 0 is everything, at the closing.


def test_children_of_a_shared_file_lock_the_recorded_ranges(work: Path) -> None:
    command, calls = recorded("shared_L")
    iozone(work, command)
    lines = calls.splitlines()
    children = sorted({line.split()[0] for line in lines})
    wanted = [locks("\n".join(x for x in lines if x.startswith(child))) for child in children]
    found = [one for text in our_logs(work) if (one := locks(text))]
    assert sorted(found) == sorted(wanted)
    opened = [s for text in our_logs(work) for s in re.findall(r'"[^"]*(DUMMY\.\d+)"', text)]
    assert set(opened) == {"DUMMY.0"}


def test_children_begin_one_after_the_other(work: Path) -> None:
    iozone(work, "-t 3 -d 300000 -i 0 -+n -x -s 64k -F a b c")
    with Store.open_reader(work.parent / "stored" / "study.db") as store:
        ((_, record),) = store.contents.records()
    workers = record["phases"][0]["tenants"][0]["workers"]
    began = [worker["started_ns"] for worker in workers]
    steps = [after - before for before, after in pairwise(began)]
    # Children see the start a little apart, and each counts from what it sees.
    assert all(200_000_000 < step < 400_000_000 for step in steps), steps


def test_the_buffers_are_used_in_turn(work: Path) -> None:
    agent, log = work.parent / "agent", work.parent / "raw"
    text = agent.read_text().replace("-s 0", "-e raw=write")
    agent.write_text(text.replace(str(log.parent / "log"), str(log)))

    def addresses(words: str) -> set[int]:
        for path in work.parent.glob("raw.*"):
            path.unlink()
        shutil.rmtree(work.parent / "stored", ignore_errors=True)
        iozone(work, words)
        pattern = re.compile(r"write\(0x\w+, (0x[0-9a-f]+), 0x4000\)")
        texts = [path.read_text() for path in work.parent.glob("raw.*")]
        return {int(match, 16) for text in texts for match in pattern.findall(text)}

    alone = addresses("-i 0 -+n -s 256k -r 16k -f t.tmp")
    cycling = sorted(addresses("-m -i 0 -+n -s 256k -r 16k -f t.tmp"))
    assert len(alone) == 1
    assert len(cycling) == 16
    assert {b - a for a, b in pairwise(cycling)} == {16384}


def test_a_pause_follows_each_test(work: Path) -> None:
    began = time.monotonic()
    printed = iozone(work, "-+q 1 -i 0 -s 64k -f t.tmp")
    assert time.monotonic() - began >= 2  # Two passes.
    assert "\tDelay 1 seconds between tests enabled.\n" in printed


def test_files_in_several_directories_are_written_where_they_were_named(work: Path) -> None:
    (work / "d1").mkdir()
    (work.parent / "d2").mkdir()
    iozone(work, "-t 2 -i 0 -i 1 -+n -w -s 64k -F d1/a ../d2/b")
    assert (work / "d1" / "a").stat().st_size == 65536
    assert (work.parent / "d2" / "b").stat().st_size == 65536
    shutil.rmtree(work.parent / "stored")
    (work / "names").write_text("d1/a\n../d2/b\n")
    iozone(work, "-+R names -t 2 -i 1 -+n -s 64k")
    assert not (work / "d1" / "a").exists()
    assert not (work.parent / "d2" / "b").exists()


def test_the_log_of_operations_is_removed_and_the_files_are_appended_to(work: Path) -> None:
    iozone(work, "-Q -i 0 -+n -s 64k -r 16k -f t.tmp")
    first = (work / "wol.dat").read_text()
    shutil.rmtree(work.parent / "stored")
    iozone(work, "-Q -i 0 -+n -s 64k -r 16k -f t.tmp")
    assert (work / "wol.dat").read_text().startswith(first)
    assert (work / "wol.dat").read_text().count("Offset in kBytes") == 2
    assert sorted(path.name for path in work.iterdir()) == ["wol.dat"]
    assert not (work.parent / "stored" / "operations").exists()


def pages(path: Path) -> list[bytes]:
    content = path.read_bytes()
    return [content[at : at + 4096] for at in range(0, len(content), 4096)]


def test_shares_of_the_data_repeat_as_asked(work: Path) -> None:
    """IOzone 3.489 on the same command: 129 different pages, 192 equal at the same place."""
    iozone(work, "-t 2 -+w 50 -i 0 -+n -s 1m -r 64k -w -x -F A B")
    first, second = pages(work / "A"), pages(work / "B")
    assert len(set(first)) == 256
    assert sum(a == b for a, b in zip(first, second, strict=True)) == 128


def test_shares_that_repeat_everywhere_or_are_empty(work: Path) -> None:
    iozone(work, "-+w 25 -+y 100 -+a 50 -i 0 -s 1m -r 64k -w -f A")
    found = pages(work / "A")
    # Of 16 pages in each record 4 are the same in all, and half of the other 12 are empty.
    assert found.count(bytes(4096)) == 6 * 16
    assert len(set(found)) == 1 + 4 + 6 * 16


def test_a_selected_page_is_compressible_only_where_that_was_asked(work: Path) -> None:
    iozone(work, "-+a 75 -i 0 -+n -s 256k -r 64k -w -f A")
    content = (work / "A").read_bytes()
    assert len(zlib.compress(content)) / len(content) == pytest.approx(0.25, abs=0.01)
