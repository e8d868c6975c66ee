"""A whole device, raw and formatted: asked for by its serial, measured, and left with a marker.

The devices are loop devices over images of these tests.
"""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Run
from .machine_state import differences, machine_state

pytestmark = pytest.mark.needs_loop

MIB = 1 << 20
SIZE = 96 * MIB
SMALL = ("--record-size", "64k", "--file-size", "8m", "--rounds", "2", "--seed", "7")
FAST = """
name = "fast"
rounds = 1
testbed = {{ kind = "device", path = "{node}", allow_destructive = "{serial}" }}
[factors]
scheduler = ["none"]
[[workloads]]
name = "fast"
kind = "mixed"
duration = "4s"
[[workloads.streams]]
name = "bulk"
direction = "write"
pattern = "sequential"
record_size = "1m"
depth = 8
file_size = "16m"
"""
MARKER = b"iolab-device-marker-1\n"


@dataclass(frozen=True)
class Disk:
    """A loop device that stands for a disk."""

    node: str
    image: Path

    @property
    def serial(self) -> str:
        """Phrase that is typed for it."""
        return f"{self.image.name}-{self.image.stat().st_ino}"

    def content(self) -> bytes:
        """Everything on it."""
        return Path(self.node).read_bytes()

    def is_marked(self) -> bool:
        """Tell whether both ends are blank but for iolab's marker."""
        content = self.content()
        ends = content[4096:MIB] + content[-MIB:]
        return content.startswith(MARKER) and is_blank(ends)

    def is_blank(self) -> bool:
        """Tell whether there is nothing on it."""
        return is_blank(self.content())


def is_blank(content: bytes) -> bool:
    """Tell whether all bytes are zeros; `any` takes seconds for a disk."""
    return content == bytes(len(content))


def state_of(node: str) -> dict[str, str]:
    """Settings of the disk and where it is mounted; other tests may use other devices."""
    own = f"{node.removeprefix('/dev/')}."
    state = machine_state()
    found = {name: value for name, value in state.items() if name.startswith(own)}
    found["mounts"] = "\n".join(line for line in state["mounts"].splitlines() if node in line)
    return found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """An empty disk; all but its content is as before when the test ends."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(SIZE)
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    node = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    before = state_of(node)
    try:
        yield Disk(node, image)
        changed = differences(before, state_of(node))
        assert not changed, "the machine was changed: " + "; ".join(changed)
    finally:
        subprocess.run(["losetup", "-d", node], check=True)


@pytest.mark.parametrize("fs", ["none", "ext4"])
def test_schedulers_on_a_device(iolab: Run, disk: Disk, tmp_path: Path, fs: str) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--fs", fs,
        "--test", "write,random-read", *SMALL, "--out", out, "--erase-serial", disk.serial,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "written in all" in done.stderr, "the planned writes are told"
    with sqlite3.connect(out / "study.db") as store:
        rows = store.execute("SELECT COUNT(*) FROM record").fetchone()[0]
    assert rows == 2 * 2
    assert json.loads((out / "verdict.json").read_text())["sentence"]
    assert disk.is_marked()
    if fs == "none":
        assert not is_blank(disk.content()[MIB : 9 * MIB]), "the slice was written"
        assert is_blank(disk.content()[9 * MIB :]), "nothing behind it was"


def test_the_accepted_amount_is_kept_and_a_larger_one_goes_on(
    iolab: Run, disk: Disk, tmp_path: Path
) -> None:
    """Eight trials of 8 MiB, of which four are accepted; all of it as the kernel counts it."""
    arguments = (
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--test",
        "write", "--record-size", "64k", "--file-size", "8m", "--rounds", "4", "--seed", "7",
        "--out", tmp_path / "out",
    )  # fmt: skip
    stat = Path("/sys/block", disk.node.removeprefix("/dev/"), "stat")
    before = int(stat.read_text().split()[6]) * 512
    done = iolab(*arguments, "--erase-serial", disk.serial, "--accept-writes", "36m")
    assert done.returncode == 2, done.stderr
    assert "at most 68 MiB are written in all" in done.stderr
    assert "t0005 would write about 8 MiB more" in done.stderr
    assert int(stat.read_text().split()[6]) * 512 - before <= 36 * MIB
    assert disk.is_marked(), "all was put back in order"
    again = iolab(*arguments, "--resume", "--accept-writes", "20m")
    assert (again.returncode, "have written" in again.stderr) == (2, True), again.stderr
    wanted = done.stderr.partition("--resume --accept-writes ")[2].split()[0]
    done = iolab(*arguments, "--resume", "--accept-writes", wanted)
    assert done.returncode == 0, done.stderr
    assert "8 trials finished" in done.stderr
    assert int(stat.read_text().split()[6]) * 512 - before <= int(wanted)


def test_a_stream_that_writes_faster_than_thought_is_ended_in_its_trial(
    iolab: Run, disk: Disk, tmp_path: Path
) -> None:
    """200 MB/s are assumed; a disk that is slower keeps the amount without being stopped."""
    study = tmp_path / "fast.toml"
    study.write_text(FAST.format(node=disk.node, serial=disk.serial))
    stat = Path("/sys/block", disk.node.removeprefix("/dev/"), "stat")
    before = int(stat.read_text().split()[6]) * 512
    arguments = ("run", study, "--out", tmp_path / "out", "--erase-serial", disk.serial)
    done = iolab(*arguments, "--accept-writes", "64m")
    assert (done.returncode, "t0001 would write" in done.stderr) == (2, True), done.stderr
    assert "it depends on the device's speed" in done.stderr
    done = iolab(*arguments, "--resume", "--accept-writes", "900m")
    written = int(stat.read_text().split()[6]) * 512 - before
    was_ended = "t0001 was ended while it wrote" in done.stderr
    assert (done.returncode, written > 900 * MIB) == ((2, True) if was_ended else (0, False))
    assert written < 1800 * MIB, "the amount and a moment of the disk's speed"
    assert disk.is_marked()


def test_preconditioning_that_would_write_too_much_is_not_begun(
    iolab: Run, disk: Disk, tmp_path: Path
) -> None:
    """A fast device had written all of it before anybody looked."""
    stat = Path("/sys/block", disk.node.removeprefix("/dev/"), "stat")
    before = int(stat.read_text().split()[6]) * 512
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--test",
        "write", *SMALL, "--out", tmp_path / "out", "--erase-serial", disk.serial,
        "--precondition", "fill2x", "--accept-writes", "100m",
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "preconditioning writes 188 MiB before the first trial" in done.stderr
    assert "no trial was begun" in done.stderr
    assert int(stat.read_text().split()[6]) * 512 - before < 4 * MIB
    assert not (tmp_path / "out").exists()


def test_preconditioning_counts_and_is_ended_too(iolab: Run, disk: Disk, tmp_path: Path) -> None:
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--test",
        "write", *SMALL, "--out", tmp_path / "out", "--erase-serial", disk.serial,
        "--precondition", "random", "--accept-writes", "190m",
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "what comes before the first trial" in done.stderr
    assert "no trial was begun" in done.stderr
    assert not (tmp_path / "out").exists()
    content = disk.content()
    assert is_blank(content[4096:MIB] + content[-MIB:]), "both ends are blank again"


def test_raw_and_formatted_in_one_study_without_asking_again(
    iolab: Run, disk: Disk, tmp_path: Path
) -> None:
    arguments = (
        "compare", "--on", f"device:{disk.node}", "--fs", "none,ext4", "--test", "write,read",
        "--workers", "2", "--workers-as", "processes", *SMALL,
    )  # fmt: skip
    first = iolab(*arguments, "--out", tmp_path / "a", "--erase-serial", disk.serial)
    assert first.returncode == 0, first.stderr
    again = iolab(*arguments, "--out", tmp_path / "b")
    assert again.returncode == 0, again.stderr
    assert "confirmed for this very study within the last 24 hours" in again.stderr
    other = iolab(*arguments[:-1], "8", "--out", tmp_path / "c")
    assert (other.returncode, "no terminal" in other.stderr) == (2, True), other.stderr
    with Path(disk.node).open("r+b") as device:
        device.seek(9 * MIB)
        device.write(b"thesis")
    late = iolab(*arguments, "--out", tmp_path / "d")
    assert (late.returncode, "no terminal" in late.stderr) == (2, True), late.stderr
    assert disk.content()[9 * MIB :].startswith(b"thesis")


def test_an_image_that_is_used_elsewhere_is_refused(iolab: Run, disk: Disk, tmp_path: Path) -> None:
    link = tmp_path / "link.img"
    link.hardlink_to(disk.image)
    arguments = (
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--test",
        "write", *SMALL, "--out", tmp_path / "out", "--erase-serial", disk.serial,
    )  # fmt: skip
    attach = ["losetup", "--find", "--show", "-o", "4194304", str(link)]
    twin = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        done = iolab(*arguments)
    finally:
        subprocess.run(["losetup", "-d", twin], check=True)
    assert (done.returncode, f"{twin} has the same image" in done.stderr) == (2, True), done.stderr
    with link.open("r+b"):
        done = iolab(*arguments)
    assert (done.returncode, "has its image" in done.stderr) == (2, True), done.stderr
    assert disk.is_blank()


def test_a_dry_run_lists_every_step_of_class_c_and_changes_nothing(iolab: Run, disk: Disk) -> None:
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--fs", "none,ext4", "--scheduler",
        "none,mq-deadline", "--test", "write", *SMALL, "--dry-run", "--precondition", "fill",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in (
        f"type: ERASE {disk.serial} loop", "[C] claim_device", "[C] mkfs", "[C] mount",
        "[C] write_knob", "[C] write_device", "precondition fill", "[C] write_marker", "wear",
    ):  # fmt: skip
        assert text in done.stdout, text
    assert "[B]" not in done.stdout
    assert disk.is_blank()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "no terminal"),
        (("--erase-serial", "S5GXNF0R"), "is not the device with the serial 'S5GXNF0R'"),
        (("--erase-serial", ""), "there is nothing in it"),
        (("--yes",), "there is no option"),
        (("--force",), "there is no option"),
    ],
)
def test_nothing_else_confirms(
    iolab: Run, disk: Disk, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline",
        "--test", "write", *SMALL, "--out", out, *flags,
    )  # fmt: skip
    is_usage = "no option" in said or "nothing in it" in said
    assert done.returncode == (1 if is_usage else 2), done.stderr
    assert said in done.stderr
    assert disk.is_blank()
    assert not out.exists()


@pytest.mark.parametrize(("is_right", "code"), [(True, 0), (False, 2)])
def test_the_phrase_is_typed_at_a_terminal(
    disk: Disk, tmp_path: Path, is_right: bool, code: int
) -> None:
    terminal, end = pty.openpty()
    phrase = f"ERASE {disk.serial} loop" if is_right else "ERASE disk.img loop"
    with subprocess.Popen(
        [
            sys.executable, "-m", "iolab.cli", "compare", "--on", f"device:{disk.node}",
            "--scheduler", "none,mq-deadline", "--test", "write", *SMALL,
        ],
        stdin=end, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    ) as running:  # fmt: skip
        os.write(terminal, f"{phrase}\n".encode())
        said = running.communicate(timeout=100)[0]
    os.close(terminal)
    os.close(end)
    assert running.returncode == code, said
    for text in (disk.node, "model", disk.serial, str(SIZE), f"type: ERASE {disk.serial} loop"):
        assert text in said, text
    assert is_right == disk.is_marked()
    assert is_right or disk.is_blank()


def test_a_study_file_names_the_serial(iolab: Run, disk: Disk, tmp_path: Path) -> None:
    study = tmp_path / "device.toml"

    def write(key: str) -> None:
        study.write_text(
            f'name = "device"\ntestbed = {{ kind = "device", path = "{disk.node}"{key} }}\n'
            'rounds = 1\n[factors]\nscheduler = ["none", "mq-deadline"]\n[settings]\n'
            'record_size = "64k"\nfile_size = "8m"\n[[workloads]]\nkind = "iozone"\n'
            'name = "iozone"\ntests = ["write"]\n'
        )

    serial = ("--erase-serial", disk.serial)
    write("")
    done = iolab("run", study, *serial)
    assert (done.returncode, "allow_destructive" in done.stderr) == (2, True), done.stderr
    write(', allow_destructive = "S5GXNF0R"')
    done = iolab("run", study, *serial)
    assert (done.returncode, "S5GXNF0R" in done.stderr) == (2, True), done.stderr
    write(f', allow_destructive = "{disk.serial}"')
    done = iolab("run", study)
    assert (done.returncode, "no terminal" in done.stderr) == (2, True), done.stderr
    assert disk.is_blank()
    done = iolab("run", study, *serial)
    assert done.returncode == 0, done.stderr


def test_a_disk_that_is_not_empty_is_refused_with_the_command_that_empties_it(
    iolab: Run, disk: Disk
) -> None:
    subprocess.run(["mkfs.ext4", "-F", "-q", disk.node], check=True)
    before = disk.content()
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline",
        "--test", "write", *SMALL, "--erase-serial", disk.serial,
    )  # fmt: skip
    assert done.returncode == 2
    assert "ext4" in done.stderr
    assert f"wipefs -a {disk.node}" in done.stderr
    assert disk.content() == before


def test_the_doctor_says_of_every_device_whether_it_could_be_used(iolab: Run, disk: Disk) -> None:
    name = disk.node.removeprefix("/dev/")
    could = iolab("doctor").stdout
    line = next(line for line in could.splitlines() if f"device {name} " in line)
    assert f"would erase loop {disk.serial}" in line
    subprocess.run(["mkswap", disk.node], check=True, capture_output=True)
    refused = iolab("doctor").stdout
    line = next(line for line in refused.splitlines() if f"device {name} " in line)
    assert "is protected: iolab refuses to erase it with `--on device:`, because" in line
    assert "swap" in line


def test_preconditioning_is_stored_with_the_study(iolab: Run, disk: Disk, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", f"device:{disk.node}", "--scheduler", "none,mq-deadline", "--test",
        "write", *SMALL, "--out", out, "--erase-serial", disk.serial, "--precondition", "fill",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(out / "study.db") as store:
        text = store.execute("SELECT testbed_json FROM session").fetchone()[0]
    facts = json.loads(text)["facts"]
    assert facts["precondition.method"] == "fill"
    assert facts["precondition.written_bytes"] == str(SIZE - 2 * MIB)
